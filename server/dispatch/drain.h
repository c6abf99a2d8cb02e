// SPDX-License-Identifier: MIT
//
// Drain: calls back when every command that had begun has ended, on all I/O threads.
//
// Holding commands back is not enough when they must have stopped: a command that has passed the
// check may still wait for its stripes. A command runs from its checks to its end on one thread, so
// once each I/O thread has been between two commands, no command from before is left.
//
// Invariants: one drain at a time; its callbacks have returned before the next one begins.
// Thread safety: begin() may be called from any thread, also by a callback. Callbacks run on one of
// the I/O threads: they must not wait for another drain.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace server {

class Drain {
 public:
  using Callback = std::function<void()>;

  // Calls back once each I/O thread has been between two commands. Set once, before begin();
  // without I/O threads there is nothing to wait for.
  std::function<void(Callback on_all_passed)> visit_threads = [](const Callback& on_all_passed) {
    on_all_passed();
  };

  void begin(Callback on_ended);

 private:
  void visit();

  std::mutex mutex_;  // guards the members below
  std::vector<Callback> waiting_;
  bool is_running_ = false;
};

}  // namespace server
