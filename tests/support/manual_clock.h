// SPDX-License-Identifier: MIT
//
// ManualClock: a clock that moves only when a test moves it.
//
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace server {

class ManualClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return now_ms; }
  int64_t monotonic_us() const override { return now_ms * 1000; }
  std::atomic<int64_t> now_ms{1'700'000'000'000};  // the leader's thread reads it too
};

}  // namespace server
