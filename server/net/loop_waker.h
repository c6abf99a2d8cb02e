// SPDX-License-Identifier: MIT
//
// LoopWaker: has a loop do something once, however often it is told to, while somebody waits for
// it.
//
// Invariants: whoever arms the waker and then looks misses nothing: what comes after the look
// wakes. Thread safety: wake() from any thread; arm() and disarm() on the loop's.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "server/net/event_loop.h"

namespace server::net {

class LoopWaker {
 public:
  LoopWaker(EventLoop& loop, std::function<void()> task) : loop_(loop), task_(std::move(task)) {}
  LoopWaker(const LoopWaker&) = delete;
  LoopWaker& operator=(const LoopWaker&) = delete;

  // The next wake() counts.
  void arm() { is_armed_ = true; }
  // Nobody waits.
  void disarm() { is_armed_ = false; }
  void wake() {
    // Looks first: most calls come while nobody waits.
    if (is_armed_ && is_armed_.exchange(false)) loop_.post([this] { task_(); });
  }

 private:
  EventLoop& loop_;
  const std::function<void()> task_;
  std::atomic<bool> is_armed_{false};
};

}  // namespace server::net
