// SPDX-License-Identifier: MIT
//
// CommandResult: what a connection must know about a command that the dispatcher has executed, in
// addition to the bytes of its reply.
//
//   handler ── Context::await(), close_after_reply() ──► CommandResult ──► caller of execute()
//
// Thread safety: a value, which belongs to the thread that runs the command.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/session/awaited_reply.h"

namespace server {

enum class Outcome : uint8_t {
  kDone,
  kClose,     // the connection closes after the replies are sent
  kBlocked,   // the reply follows later, by CommandResult::pending
  kHeldBack,  // the command did not run; retry the same request later
};

struct CommandResult {
  Outcome outcome = Outcome::kDone;
  // True if a write command has run. Its reply must not be sent before the write is safe.
  bool may_have_written = false;
  // Number of bytes before the reply that are messages to the client. They may be sent at once.
  size_t pushed_bytes = 0;
  // The reply that the command waits for; empty unless the outcome is kBlocked. The caller must
  // execute no other command of the session during the wait.
  PendingReply pending{};
};

}  // namespace server
