// SPDX-License-Identifier: MIT
//
// Clock: wall time and monotonic time behind an interface, so that tests never sleep.
//
// Invariants: wall time may jump, monotonic time never decreases.
// Thread safety: all members may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace core {

inline constexpr int64_t kSecondUs = 1'000'000;

class Clock {
 public:
  virtual ~Clock() = default;
  // Milliseconds since 1970-01-01 UTC. Expiries use this time.
  virtual int64_t wall_ms() const = 0;
  // The wall time in microseconds. A clock without that resolution returns wall_ms() * 1000.
  virtual int64_t wall_us() const { return wall_ms() * 1000; }
  // Microseconds since an arbitrary start. Durations use this time.
  virtual int64_t monotonic_us() const = 0;
};

class SystemClock final : public Clock {
 public:
  int64_t wall_ms() const override {
    const timespec now = wall_now();
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  }
  int64_t wall_us() const override {
    const timespec now = wall_now();
    return int64_t{now.tv_sec} * kSecondUs + now.tv_nsec / 1000;
  }
  int64_t monotonic_us() const override {
    using namespace std::chrono;
    return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
  }

 private:
  // std::chrono::system_clock counts nanoseconds in 64 bits, which overflow in the year 2262.
  static timespec wall_now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return now;
  }
};

}  // namespace core
