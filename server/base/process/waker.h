// SPDX-License-Identifier: MIT
//
// Waker: ends the poll() of a thread from another thread.
//
// Invariants: no wake() is lost: a wake() before the wait ends the next wait at once.
// Thread safety: any thread may call wake(). The other members belong to the thread that waits.
// Source: eventfd(2), poll(2).
#pragma once

#include <cstdint>

#include "core/descriptor.h"

namespace server {

class Waker {
 public:
  Waker();

  void wake();
  // Waits for the timeout or for wake(). Returns at once if wake() was called before.
  void wait(int64_t timeout_ms);
  // Forgets earlier calls of wake().
  void drain();
  // Returns the descriptor. It becomes readable at wake(), and stays readable until drain() or
  // wait().
  int descriptor() const { return descriptor_.get(); }

 private:
  const core::Descriptor descriptor_;
};

}  // namespace server
