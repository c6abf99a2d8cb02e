// SPDX-License-Identifier: MIT
//
// All waiting of the tests. wait_until() polls a condition, with a deadline that only a hang
// reaches. No other code of the tests sleeps. The environment variable BLOOMERY_SLOW is a factor
// for the deadline.
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <cassert>
#include <chrono>
#include <string_view>
#include <thread>

#include "tests/support/environment.h"

namespace support {

inline std::chrono::seconds deadline() {
  constexpr std::chrono::seconds kDeadline{60};
  return kDeadline * number_of("BLOOMERY_SLOW", 1);
}

// Polls until the condition is true. Returns false if that takes longer than the deadline.
template <class Condition>
[[nodiscard]] bool wait_until(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + deadline();
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Sleeps, for a test whose subject is time. `why` names the event that must, or must not, happen
// during the wait. The test's expectations must also hold if far more time has passed.
inline void let_time_pass(std::chrono::milliseconds time, [[maybe_unused]] std::string_view why) {
  assert(!why.empty());
  std::this_thread::sleep_for(time);
}

}  // namespace support
