// SPDX-License-Identifier: MIT
//
// ReplyLog: the append log as seen by replies that wait for it.
//
// Invariants: offsets only grow; what was safe stays safe.
// Thread safety: all members may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace server {

class ReplyLog {
 public:
  // The journal offset that replies made now depend on; 0 is none. `has_written`: some of them
  // answer commands that may write, whether they have changed anything or not.
  virtual uint64_t offset_of_replies(bool has_written) const = 0;
  virtual bool is_safe(uint64_t offset) const = 0;
  // Whether each reply to a write waits for a disk.
  virtual bool syncs_before_replies() const = 0;
  // Whether the file takes no bytes.
  virtual bool fails() const = 0;
  // The error that answers a write which is in memory and not in the file.
  virtual std::string failure_text() const = 0;
  // Writes what can be written at once.
  virtual void write() = 0;
  // Brings the journal's end nearer to safety for the clients that wait, `clients` more of them
  // than at the thread's last call.
  virtual void commit(size_t clients) = 0;

 protected:
  ~ReplyLog() = default;
};

}  // namespace server
