// SPDX-License-Identifier: MIT
//
// WriteAcks: interface to the acknowledgements of replicas. A reply to a write is held back until
// the replicas have acknowledged the write.
//
// Thread safety: all members may be called from any thread.
#pragma once

#include <cstdint>

namespace server::net {

class WriteAcks {
 public:
  // Returns the stream offset that replicas must acknowledge before the reply to a write is sent.
  // The write has just been executed. 0: the reply need not wait.
  virtual uint64_t offset_of_writes() const = 0;
  // Returns whether all replicas that must acknowledge writes have acknowledged the offset.
  virtual bool has_all(uint64_t offset) const = 0;
  // Wakes the thread that sends the stream, so that it asks the replicas for acknowledgements.
  virtual void request() = 0;

 protected:
  ~WriteAcks() = default;
};

}  // namespace server::net
