// SPDX-License-Identifier: MIT
#include "server/base/process/tick_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace server {
namespace {

using namespace std::chrono_literals;

void wait_for_a_tick(const TickClock& clock) {
  const uint64_t begin = TickClock::now();
  while (TickClock::now() == begin || clock.ticks_per_microsecond() == 1) {
  }
}

// A counter of Prometheus must never fall.
TEST(TickClock, ASettledRateKeepsSumsFromFalling) {
  const TickClock clock(0ns);
  wait_for_a_tick(clock);
  const double rate = clock.ticks_per_microsecond();
  EXPECT_GT(rate, 0);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(clock.ticks_per_microsecond(), rate) << i;
  EXPECT_EQ(clock.microseconds(1'000'000'000), 1'000'000'000 / rate);
}

TEST(TickClock, MeasuresAgainUntilTheRateIsSettled) {
  const TickClock clock(1h);
  wait_for_a_tick(clock);
  const double rate = clock.ticks_per_microsecond();
  while (clock.ticks_per_microsecond() == rate) {
  }
}

}  // namespace
}  // namespace server
