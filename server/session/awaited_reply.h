// SPDX-License-Identifier: MIT
//
// AwaitedReply: the reply of a command that must wait. The command's handler passes it to
// Context::await(). The connection then stops executing and calls try_answer() again: after each
// acknowledgement of a replica, whenever the client's ClientEndpoint::wake is called, and every few
// milliseconds.
//
// Invariants: one call of try_answer() writes the whole reply, and returns true. All earlier calls
// write nothing, and return false.
// Thread safety: belongs to the session's thread. Other threads may change the state that
// try_answer() checks.
#pragma once

#include <cstdint>
#include <memory>

#include "protocol/reply_writer.h"

namespace server {

class AwaitedReply {
 public:
  AwaitedReply() = default;
  virtual ~AwaitedReply() = default;
  AwaitedReply(const AwaitedReply&) = delete;
  AwaitedReply& operator=(const AwaitedReply&) = delete;

  // Writes the reply and returns true, or writes nothing and returns false. `is_late` means that
  // the deadline has passed, that CLIENT UNBLOCK ends the wait, or that the command is inside EXEC,
  // which cannot wait. In these cases the function must write the reply.
  virtual bool try_answer(protocol::ReplyWriter& reply, bool is_late) = 0;
  // Returns the deadline in monotonic time; 0 if there is none. Without a deadline, `is_late` is
  // true only after CLIENT UNBLOCK or inside EXEC.
  virtual int64_t deadline_us() const { return 0; }
  virtual bool can_be_unblocked() const { return false; }
  // Returns whether try_answer() has changed keys. ReplyGate then holds the reply back, like the
  // reply to any other write.
  virtual bool has_written() const { return false; }
  // Returns whether CLIENT LIST and INFO show the waiting client as blocked. A client that can be
  // unblocked is always shown.
  virtual bool is_shown() const { return can_be_unblocked(); }
};

struct PendingReply {
  std::unique_ptr<AwaitedReply> reply{};
  bool is_silent = false;    // true if the client must not get the reply, because of CLIENT REPLY
  size_t command_index = 0;  // the command's row in the counters of errors
};

}  // namespace server
