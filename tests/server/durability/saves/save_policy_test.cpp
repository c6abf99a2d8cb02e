// SPDX-License-Identifier: MIT
#include "server/durability/saves/save_policy.h"

#include <gtest/gtest.h>

#include "core/clock.h"

namespace server {
namespace {

constexpr int64_t kMinuteUs = 60 * core::kSecondUs;

TEST(SavePolicyTest, ASavePointNeedsItsChangesAndItsTime) {
  EXPECT_FALSE(save_point_is_reached("3600 1 300 100", 0, 100'000));
  EXPECT_FALSE(save_point_is_reached("3600 1 300 100", 1, 3600));
  EXPECT_TRUE(save_point_is_reached("3600 1 300 100", 1, 3601));
  EXPECT_FALSE(save_point_is_reached("3600 1 300 100", 99, 301));
  EXPECT_TRUE(save_point_is_reached("3600 1 300 100", 100, 301));
}

TEST(SavePolicyTest, WithoutSavePointsNoneIsReached) {
  EXPECT_FALSE(save_point_is_reached("", 1'000'000, 1'000'000));
}

TEST(SavePolicyTest, ALogGrowsByItsPercentage) {
  EXPECT_FALSE(log_has_outgrown(199, 100, 100, 0));
  EXPECT_TRUE(log_has_outgrown(200, 100, 100, 0));
  EXPECT_FALSE(log_has_outgrown(200, 100, 0, 0)) << "never";
  EXPECT_FALSE(log_has_outgrown(200, 100, 100, 201)) << "too small to matter";
  EXPECT_TRUE(log_has_outgrown(2, 0, 100, 0)) << "a base without bytes counts as one";
  EXPECT_FALSE(log_has_outgrown(50, 100, 1, 0)) << "it has shrunk";
}

TEST(SavePolicyTest, FailedRewritesWaitTwiceAsLongEachTime) {
  EXPECT_EQ(rewrite_delay_us(0), 0);
  EXPECT_EQ(rewrite_delay_us(2), 0);
  EXPECT_EQ(rewrite_delay_us(3), kMinuteUs);
  EXPECT_EQ(rewrite_delay_us(4), 2 * kMinuteUs);
  EXPECT_EQ(rewrite_delay_us(8), 32 * kMinuteUs);
  EXPECT_EQ(rewrite_delay_us(9), 60 * kMinuteUs);
  EXPECT_EQ(rewrite_delay_us(1000), 60 * kMinuteUs);
}

}  // namespace
}  // namespace server
