// SPDX-License-Identifier: MIT
#include "server/net/loop/processor_share.h"

#include <gtest/gtest.h>

namespace server::net {
namespace {

using std::chrono::milliseconds;

TEST(ProcessorShare, MoreThanHalfIsBusy) {
  ProcessorShare share;
  EXPECT_FALSE(share.is_busy(milliseconds(1000), milliseconds(10)));
  EXPECT_TRUE(share.is_busy(milliseconds(1200), milliseconds(111)));
  EXPECT_FALSE(share.is_busy(milliseconds(1400), milliseconds(211)));
}

TEST(ProcessorShare, ShortTimesTellNothing) {
  ProcessorShare share;
  EXPECT_FALSE(share.is_busy(milliseconds(1000), milliseconds(0)));
  EXPECT_FALSE(share.is_busy(milliseconds(1099), milliseconds(99)));
  EXPECT_TRUE(share.is_busy(milliseconds(1100), milliseconds(100)));
  EXPECT_TRUE(share.is_busy(milliseconds(1101), milliseconds(100)));
}

}  // namespace
}  // namespace server::net
