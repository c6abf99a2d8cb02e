// SPDX-License-Identifier: MIT
//
// DeferredReply: a reply that is sent later, when another thread has completed the command. The
// reply is a short text, a number or an error.
//
// Thread safety: `end` and `end_with` may be called from any thread, also after the session has
// ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "server/session/awaited_reply.h"

namespace server {

class Clients;

struct DeferredReply {
  // Exactly one of these functions must be called, and only once. `end` replies OK or the error in
  // its argument. `end_with` replies with its argument, a line that begins with '+', '-' or ':'.
  std::function<void(const core::Result<>&)> end;
  std::function<void(std::string line)> end_with;
  // The reply, which the command must pass to Context::await(). Must not be used inside EXEC, where
  // no command can wait.
  std::unique_ptr<AwaitedReply> awaited;
};

// `clients` must outlive the call of `end` or `end_with`.
DeferredReply defer_reply(const Clients& clients, uint64_t session_id);

}  // namespace server
