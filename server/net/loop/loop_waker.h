// SPDX-License-Identifier: MIT
//
// LoopWaker: posts a task to an event loop at the first wake() after arm(). Further calls of wake()
// post nothing until the next arm().
//
// Invariants: if the loop's thread calls arm() and then checks for events, no event is missed. An
// event after the check calls wake(), which posts the task.
// Thread safety: any thread may call wake(). Only the loop's thread may call arm() and disarm().
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "server/net/loop/event_loop.h"

namespace server::net {

class LoopWaker {
 public:
  LoopWaker(EventLoop& loop, std::function<void()> task) : loop_(loop), task_(std::move(task)) {}

  // Makes the next wake() post the task. Later calls of wake() post nothing until the next arm().
  void arm() { is_armed_ = true; }
  // Makes wake() post nothing until the next arm().
  void disarm() { is_armed_ = false; }
  void wake() {
    // The flag is loaded before it is exchanged, because in most calls it is not set, and loading
    // it is cheaper.
    if (is_armed_ && is_armed_.exchange(false)) loop_.post([this] { task_(); });
  }

 private:
  EventLoop& loop_;
  const std::function<void()> task_;
  std::atomic<bool> is_armed_{false};
};

}  // namespace server::net
