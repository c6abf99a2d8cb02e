// SPDX-License-Identifier: MIT
//
// Clock: the two kinds of time a server needs, behind a seam so that tests never sleep.
//
// Invariants: wall time may jump, monotonic time never goes back.
// Thread safety: all members may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace core {

inline constexpr int64_t kSecondUs = 1'000'000;

class Clock {
 public:
  virtual ~Clock() = default;
  // Milliseconds since 1970-01-01 UTC; what expiries are measured in.
  virtual int64_t wall_ms() const = 0;
  // The same time in microseconds, where the clock has them.
  virtual int64_t wall_us() const { return wall_ms() * 1000; }
  // Microseconds since an arbitrary start; what durations are measured in.
  virtual int64_t monotonic_us() const = 0;
};

class SystemClock final : public Clock {
 public:
  int64_t wall_ms() const override {
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  }
  int64_t wall_us() const override {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  }
  int64_t monotonic_us() const override {
    using namespace std::chrono;
    return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace core
