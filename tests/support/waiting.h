// SPDX-License-Identifier: MIT
//
// The only code of the tests that waits. wait_until() polls a condition until a deadline that
// passes only if the program hangs. The deadline is multiplied by the environment variable
// BLOOMERY_SLOW.
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

// Sleeps. It is only for tests that need time to pass. `why` names the event that must, or must
// not, happen during the sleep. The test must also succeed if the sleep takes far longer.
inline void let_time_pass(std::chrono::milliseconds time, [[maybe_unused]] std::string_view why) {
  assert(!why.empty());
  std::this_thread::sleep_for(time);
}

}  // namespace support
