// SPDX-License-Identifier: MIT
//
// ManualClock: a clock that advances only when a test sets it, or by a step whenever it is read:
// `step_us` for the monotonic time, `step_ms` for the wall-clock time. `wall_step_ms` is the offset
// by which the wall clock was set forward.
//
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace server {

class ManualClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return now_ms + wall_step_ms + (stepped_ms_ += step_ms); }
  int64_t monotonic_us() const override { return now_ms * 1000 + (stepped_us_ += step_us); }
  // The members below are atomic, because several threads read the clock.
  std::atomic<int64_t> now_ms{1'700'000'000'000};
  std::atomic<int64_t> wall_step_ms{0};
  std::atomic<int64_t> step_us{0};
  std::atomic<int64_t> step_ms{0};

 private:
  mutable std::atomic<int64_t> stepped_us_{0};
  mutable std::atomic<int64_t> stepped_ms_{0};
};

}  // namespace server
