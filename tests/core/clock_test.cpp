// SPDX-License-Identifier: MIT
#include "core/clock.h"

#include <gtest/gtest.h>

#include <chrono>

namespace core {
namespace {

TEST(SystemClock, WallTimeHasTheNamedUnits) {
  using namespace std::chrono;
  const SystemClock clock;
  const auto before = system_clock::now().time_since_epoch();
  const int64_t wall_ms = clock.wall_ms();
  const int64_t wall_us = clock.wall_us();
  const auto after = system_clock::now().time_since_epoch();
  EXPECT_GE(wall_ms, duration_cast<milliseconds>(before).count());
  EXPECT_LE(wall_ms, duration_cast<milliseconds>(after).count());
  EXPECT_GE(wall_us, duration_cast<microseconds>(before).count());
  EXPECT_LE(wall_us, duration_cast<microseconds>(after).count());
}

}  // namespace
}  // namespace core
