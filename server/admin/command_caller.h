// SPDX-License-Identifier: MIT
//
// CommandCaller: runs a read-only command for an HTTP request, with the permissions of the
// request's user.
//
// Invariants: commands that may write are rejected, so no call is journalled and no reply is
// delayed by the append log. The calls do not count in the statistics and do not change the access
// times of keys. The calls use the original names of commands, whatever rename-command says.
// Thread safety: belongs to the admin port's thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "protocol/reply.h"
#include "server/admin/access.h"
#include "server/base/metrics/statistics.h"

namespace server {
class Session;
}  // namespace server

namespace server::admin {

class CommandCaller {
 public:
  explicit CommandCaller(Services& services);

  struct Caller {
    std::shared_ptr<const acl::User> user;
    std::string_view address;
    int database = 0;
  };
  // Returns the reply in RESP3. If the command would have to wait (Outcome::kHeldBack or kBlocked),
  // the reply is an error.
  protocol::Reply call(const Caller& caller, std::span<const std::string_view> arguments);

 private:
  Services& services_;
  ThreadStatistics uncounted_;
};

// Prepares a new session for the caller, as HELLO 3, AUTH and SELECT do.
void begin_session(Session& session, const CommandCaller::Caller& caller, Services& services);

protocol::Reply error_reply(std::string_view text);

}  // namespace server::admin
