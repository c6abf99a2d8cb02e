// SPDX-License-Identifier: MIT
//
// ReplyLog: the interface of the append log for replies that wait until the log has their writes.
//
// Invariants: offsets only grow. An offset is safe when the replies that wait for it may be sent.
// It then stays safe, unless CONFIG SET appendfsync makes the rule stricter.
// Thread safety: all members may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace server {

class ReplyLog {
 public:
  // Returns the journal offset that must be safe before replies made now may be sent; 0 if they
  // need not wait. `has_written` is true if at least one of the commands may write, whether or not
  // it has changed anything.
  virtual uint64_t offset_of_replies(bool has_written) const = 0;
  virtual bool is_safe(uint64_t offset) const = 0;
  // Returns whether each reply to a write waits for a sync.
  virtual bool syncs_before_replies() const = 0;
  // Returns whether the log's file cannot be written.
  virtual bool fails() const = 0;
  // Returns the error reply to a write that is in memory but not in the file.
  virtual std::string failure_text() const = 0;
  // Writes as many pending bytes as possible without waiting.
  virtual void write() = 0;
  // Writes pending bytes, and syncs them if replies wait for a sync. Does not wait while another
  // thread writes or syncs. `clients` is the number of clients that have begun to wait since the
  // calling thread's last call.
  virtual void commit(size_t clients) = 0;

 protected:
  ~ReplyLog() = default;
};

}  // namespace server
