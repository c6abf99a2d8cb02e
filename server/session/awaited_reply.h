// SPDX-License-Identifier: MIT
//
// AwaitedReply: the reply of a command that cannot be given yet. The handler of a command that
// waits hands one to Context::await(); the connection stops executing and asks it again, after each
// acknowledgement of a replica, whenever Session::wake is called, and every few milliseconds.
//
// Invariants: a reply is written whole and once, by the call that returns true.
// Thread safety: belongs to the session's thread. The state that it checks may change on any.
#pragma once

#include <cstdint>

#include "protocol/reply_writer.h"

namespace server {

class AwaitedReply {
 public:
  AwaitedReply() = default;
  virtual ~AwaitedReply() = default;
  AwaitedReply(const AwaitedReply&) = delete;
  AwaitedReply& operator=(const AwaitedReply&) = delete;

  // Writes the reply and returns true, or writes nothing. With `is_late` it must answer: its time
  // is over, CLIENT UNBLOCK ends it, or it is inside EXEC, which cannot wait.
  virtual bool try_answer(protocol::ReplyWriter& reply, bool is_late) = 0;
  // Monotonic; 0 is never. Without a deadline and outside EXEC, `is_late` comes from CLIENT UNBLOCK
  // only.
  virtual int64_t deadline_us() const { return 0; }
  virtual bool can_be_unblocked() const { return false; }
  // Whether the client is shown as blocked meanwhile, by its flags and in INFO.
  virtual bool is_shown() const { return can_be_unblocked(); }

  bool is_silent = false;  // by CLIENT REPLY; set by the dispatcher
};

}  // namespace server
