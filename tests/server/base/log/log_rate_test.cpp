// SPDX-License-Identifier: MIT
#include "server/base/log/log_rate.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(LogRateTest, OneLinePerIntervalCountsTheOthers) {
  LogRate rate(10);
  EXPECT_EQ(rate.pass(100), 0U);
  EXPECT_FALSE(rate.pass(101));
  EXPECT_FALSE(rate.pass(109));
  EXPECT_EQ(rate.pass(110), 2U);
  EXPECT_FALSE(rate.pass(119));
  EXPECT_EQ(rate.pass(500), 1U);
  EXPECT_EQ(rate.pass(510), 0U);
}

}  // namespace
}  // namespace server
