// SPDX-License-Identifier: MIT
//
// CommandCaller: runs a command that only reads for an HTTP request, with the rights of its user.
//
// Invariants: commands that may write are refused; so nothing is journalled, and no reply waits.
// The calls count in no statistics and leave the uses of keys alone. Thread safety: belongs to the
// admin port's thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "protocol/reply.h"
#include "server/admin/access.h"

namespace server {
class Session;
struct ThreadStatistics;
}  // namespace server

namespace server::admin {

class CommandCaller {
 public:
  explicit CommandCaller(Services& services);
  ~CommandCaller();
  CommandCaller(const CommandCaller&) = delete;
  CommandCaller& operator=(const CommandCaller&) = delete;

  struct Caller {
    std::shared_ptr<const acl::User> user;
    std::string_view address;
    int database = 0;
  };
  // The reply, in RESP3; an error while commands are held back.
  protocol::Reply call(const Caller& caller, std::span<const std::string_view> arguments);

 private:
  Services& services_;
  const std::unique_ptr<ThreadStatistics> uncounted_;
};

// Makes a new session the caller's, as after HELLO 3, AUTH and SELECT.
void begin_session(Session& session, const CommandCaller::Caller& caller, Services& services);

protocol::Reply error_reply(std::string_view text);

}  // namespace server::admin
