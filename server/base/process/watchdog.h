// SPDX-License-Identifier: MIT
//
// Watchdog: logs the stack of a thread that has not returned to its event loop for a while.
//
// While the watch is on, the watchdog's thread asks each watched thread for an answer, several
// times in each period. A watched thread that has not answered for a period gets SIGALRM, whose
// handler appends the thread's stack to the log. The thread is reported again only after it has
// answered.
//
// Invariants: while the watch is off, the watchdog has no thread of its own. To learn the id of
// each watched thread, the constructor calls `ask` for that thread.
// Thread safety: one thread at a time may call set_period() and stop().
// Source: Redis' watchdog-period; signal-safety(7).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/base/process/tick_thread.h"

namespace server {

class Watchdog {
 public:
  // Makes a watched thread run a function between two events of its loop.
  using Ask = std::function<void(size_t thread_index, std::function<void()> answer)>;

  // The shortest period. With a shorter one, ordinary slow commands would be reported.
  static constexpr std::chrono::milliseconds kShortest{200};

  // Watches `thread_count` threads, which `ask` addresses by their index. The functions passed to
  // `ask` must not run after this object is destroyed.
  Watchdog(size_t thread_count, Ask ask);

  // Sets the period. 0 ends the watch; a period below kShortest counts as kShortest.
  void set_period(std::chrono::milliseconds period);
  void stop() { thread_.stop(); }

 private:
  struct Watched {
    std::atomic<pid_t> thread{0};
    std::atomic<int64_t> answered{0};  // number of the last request that the thread answered
    int64_t asked = 0;                 // number of the last request that was sent to the thread
    std::chrono::steady_clock::time_point asked_at{};
    bool is_reported = false;
  };

  std::chrono::milliseconds look();
  void look_at(size_t index, std::chrono::milliseconds period);

  const size_t thread_count_;
  const Ask ask_;
  const std::unique_ptr<Watched[]> watched_;
  std::atomic<int64_t> period_ms_{0};
  TickThread thread_;
};

}  // namespace server
