// SPDX-License-Identifier: MIT
//
// Drain: tells when every command that had begun has ended, whichever I/O thread runs it.
//
// Holding commands back is not enough for whoever needs them to have stopped: one that has passed
// the check may still wait for its stripes. A command runs from its checks to its end without a
// pause, so when each I/O thread has been between two commands since, none of those is left.
//
// Invariants: one drain at a time; what it calls back has returned before the next one begins.
// Thread safety: begin() may be called from any thread, also by what is called back. What is called
// back runs on one of the I/O threads: it must not wait for another drain.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace server {

class Drain {
 public:
  using Callback = std::function<void()>;

  // Calls back once each I/O thread has been between two commands. Set once, before begin();
  // without I/O threads there is nobody to wait for.
  std::function<void(Callback on_all_passed)> visit_threads = [](const Callback& on_all_passed) {
    on_all_passed();
  };

  void begin(Callback on_ended);

 private:
  void visit();

  std::mutex mutex_;  // guards what follows
  std::vector<Callback> waiting_;
  bool is_running_ = false;
};

}  // namespace server
