// SPDX-License-Identifier: MIT
//
// TickClock: the cheapest clock, for timing every command.
//
// On x86-64 the clock is the time-stamp counter, which has had a constant rate since 2008. Reading
// it takes about a third of the time of clock_gettime(). On other processors the clock is
// std::chrono::steady_clock, in nanoseconds.
// Invariants: ticks grow at a constant rate; only differences are meaningful.
// Thread safety: all members may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace server {

class TickClock {
 public:
  TickClock() : start_ticks_(now()), start_(std::chrono::steady_clock::now()) {}

  static uint64_t now() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
  }

  // Returns the rate of the ticks, measured since this TickClock was constructed.
  double ticks_per_microsecond() const {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    const double elapsed_us = std::chrono::duration<double, std::micro>(elapsed).count();
    const uint64_t elapsed_ticks = now() - start_ticks_;
    return elapsed_us == 0 || elapsed_ticks == 0 ? 1
                                                 : static_cast<double>(elapsed_ticks) / elapsed_us;
  }
  double microseconds(uint64_t ticks) const {
    return static_cast<double>(ticks) / ticks_per_microsecond();
  }

 private:
  uint64_t start_ticks_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace server
