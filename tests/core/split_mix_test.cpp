// SPDX-License-Identifier: MIT
#include "core/split_mix.h"

#include <gtest/gtest.h>

namespace core {
namespace {

// The numbers are those of the reference implementation (Vigna 2015, splitmix64.c).
TEST(SplitMix64, DrawsTheKnownSeries) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random.draw(), 6457827717110365317U);
  EXPECT_EQ(random.draw(), 3203168211198807973U);
  EXPECT_EQ(random.draw(), 9817491932198370423U);
}

}  // namespace
}  // namespace core
