// SPDX-License-Identifier: MIT
//
// TickClock: the cheapest clock, for timing every command.
//
// On x86-64 the clock is the time-stamp counter, which has had a constant rate since 2008. Reading
// it takes about a third of the time of clock_gettime(). On other processors the clock is
// std::chrono::steady_clock, in nanoseconds.
// Invariants: ticks grow at a constant rate; only differences are meaningful. The measured rate
// stays the same once it is settled, so a sum of ticks never falls when it is read as microseconds.
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace server {

class TickClock {
 public:
  // The first call of ticks_per_microsecond() after `settles_after` settles the rate.
  explicit TickClock(std::chrono::nanoseconds settles_after = std::chrono::seconds(1))
      : start_ticks_(now()),
        start_(std::chrono::steady_clock::now()),
        settles_after_(settles_after) {}

  static uint64_t now() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
  }

  // Returns the rate of the ticks, measured since this TickClock was constructed.
  double ticks_per_microsecond() const {
    const double settled = settled_rate_.load(std::memory_order_relaxed);
    if (settled != 0) return settled;
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    const double elapsed_us = std::chrono::duration<double, std::micro>(elapsed).count();
    const uint64_t elapsed_ticks = now() - start_ticks_;
    if (elapsed_us == 0 || elapsed_ticks == 0) return 1;
    const double measured = static_cast<double>(elapsed_ticks) / elapsed_us;
    double expected = 0;
    if (elapsed < settles_after_ ||
        settled_rate_.compare_exchange_strong(expected, measured, std::memory_order_relaxed)) {
      return measured;
    }
    return expected;  // another thread has settled the rate
  }
  double microseconds(uint64_t ticks) const {
    return static_cast<double>(ticks) / ticks_per_microsecond();
  }

 private:
  uint64_t start_ticks_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::nanoseconds settles_after_;
  mutable std::atomic<double> settled_rate_{0};  // 0 until the rate is settled
};

}  // namespace server
