// SPDX-License-Identifier: MIT
//
// Watchdog: logs where a thread is that has not come back to its event loop for a while.
//
// While the watch is on, a thread of the watchdog asks each watched thread for an answer, several
// times in each period. A watched thread that owes an answer for a period gets SIGALRM, whose
// handler appends the thread's stack to the log. It is reported again only after it has answered.
//
// Invariants: without a watch no thread of the watchdog runs, and nothing is asked but each watched
// thread's id, once.
// Thread safety: set_period() and stop() on one thread at a time.
// Source: Redis' watchdog-period; signal-safety(7).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/process/threads/tick_thread.h"

namespace server {

class Watchdog {
 public:
  // Has a watched thread run the function between two other pieces of work.
  using Ask = std::function<void(size_t thread_index, std::function<void()> answer)>;

  // The shortest period: with less, ordinary slow commands would be reported.
  static constexpr std::chrono::milliseconds kShortest{200};

  // `thread_count` threads, by their index. The functions that `ask` gets must not run after this
  // object has gone.
  Watchdog(size_t thread_count, Ask ask);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // 0 ends the watch; a short period counts as the shortest.
  void set_period(std::chrono::milliseconds period);
  void stop();

 private:
  struct Watched {
    std::atomic<pid_t> thread{0};
    std::atomic<int64_t> answered{0};  // the number of the question answered last
    int64_t asked = 0;                 // the number of the last question
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
