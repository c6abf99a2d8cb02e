// SPDX-License-Identifier: MIT
#include "server/session/output_limit.h"
#include "core/clock.h"

#include <gtest/gtest.h>

#include <limits>

namespace server {
namespace {

TEST(OutputLimitTest, ZeroIsNoLimit) {
  OutputLimit limit;
  EXPECT_FALSE(limit.is_broken(std::numeric_limits<size_t>::max(), {0, 0, 0}, 0));
  EXPECT_FALSE(
      limit.is_broken(std::numeric_limits<size_t>::max(), {0, 0, 1}, 100 * core::kSecondUs));
}

TEST(OutputLimitTest, HardLimitIsBrokenAtOnce) {
  OutputLimit limit;
  EXPECT_FALSE(limit.is_broken(99, {100, 0, 0}, 0));
  EXPECT_TRUE(limit.is_broken(100, {100, 0, 0}, 0));
}

TEST(OutputLimitTest, SoftLimitIsBrokenAfterItsSeconds) {
  constexpr BufferLimit kLimit{0, 100, 2};
  OutputLimit limit;
  EXPECT_FALSE(limit.is_broken(100, kLimit, 0));
  EXPECT_FALSE(limit.is_broken(500, kLimit, core::kSecondUs));
  EXPECT_FALSE(limit.is_broken(100, kLimit, 2 * core::kSecondUs));
  EXPECT_TRUE(limit.is_broken(100, kLimit, 2 * core::kSecondUs + 1));
}

TEST(OutputLimitTest, SoftSecondsRestartOnceTheClientHasRead) {
  constexpr BufferLimit kLimit{0, 100, 2};
  OutputLimit limit;
  EXPECT_FALSE(limit.is_broken(100, kLimit, 0));
  EXPECT_FALSE(limit.is_broken(99, kLimit, 2 * core::kSecondUs));
  EXPECT_FALSE(limit.is_broken(100, kLimit, 3 * core::kSecondUs));
  EXPECT_FALSE(limit.is_broken(100, kLimit, 5 * core::kSecondUs));
  EXPECT_TRUE(limit.is_broken(100, kLimit, 6 * core::kSecondUs));
}

TEST(OutputLimitTest, ALimitSetLaterCountsFromThen) {
  OutputLimit limit;
  EXPECT_FALSE(limit.is_broken(100, {0, 0, 0}, 0));
  EXPECT_FALSE(limit.is_broken(100, {0, 50, 1}, 9 * core::kSecondUs));
  EXPECT_TRUE(limit.is_broken(100, {0, 50, 1}, 11 * core::kSecondUs));
}

TEST(OutputLimitTest, AnyNumberOfSecondsIsFine) {
  constexpr BufferLimit kForEver{0, 100, std::numeric_limits<int64_t>::max()};
  OutputLimit limit;
  EXPECT_FALSE(limit.is_broken(100, kForEver, 0));
  EXPECT_FALSE(limit.is_broken(100, kForEver, 1'000'000 * core::kSecondUs));
}

}  // namespace
}  // namespace server
