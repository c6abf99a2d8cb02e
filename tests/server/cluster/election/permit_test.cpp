// SPDX-License-Identifier: MIT
#include "server/cluster/election/permit.h"

#include <gtest/gtest.h>

namespace server::cluster {
namespace {

constexpr int64_t kTimeoutUs = 5'000'000;
constexpr int64_t kLengthUs = 3'000'000;

TEST(Permit, NewLeaderOutwaitsAPermitOnAFastClock) {
  const PermitTimes times = PermitTimes::of_timeout(kTimeoutUs);
  EXPECT_EQ(times.length_us, kLengthUs);
  EXPECT_GT(times.wait_us * 10, times.length_us * 11);
  EXPECT_GT(times.promise_us * 10, times.length_us * 11);
  EXPECT_EQ(times.ask_us, 500'000);
}

TEST(Permit, AllowsNothingBeforeItIsConfirmed) {
  Permit permit(PermitTimes::of_timeout(kTimeoutUs));
  EXPECT_FALSE(permit.allows(0));
  permit.begin(7, 100);
  EXPECT_TRUE(permit.is_held());
  EXPECT_FALSE(permit.allows(100));
}

TEST(Permit, LastsFromSendingTheNewestConfirmedCall) {
  Permit permit(PermitTimes::of_timeout(kTimeoutUs));
  permit.begin(7, 100);
  permit.confirm(50);
  EXPECT_FALSE(permit.allows(99));
  EXPECT_TRUE(permit.allows(100));
  EXPECT_TRUE(permit.allows(50 + kLengthUs - 1));
  EXPECT_FALSE(permit.allows(50 + kLengthUs));
  permit.confirm(40);
  EXPECT_EQ(permit.until_us(), 50 + kLengthUs);
}

TEST(Permit, IsNotExtendedOnceGivenUp) {
  Permit permit(PermitTimes::of_timeout(kTimeoutUs));
  permit.begin(7, 0);
  permit.confirm(0);
  permit.give_up();
  permit.confirm(10);
  EXPECT_FALSE(permit.allows(20));
  EXPECT_EQ(permit.until_us(), 0);
  permit.begin(8, 30);
  EXPECT_FALSE(permit.allows(30)) << "of the epoch before nothing is left";
}

TEST(Permit, NeedsNoWaitWhenTheLeaderBeforeHasStopped) {
  Permit permit(PermitTimes::of_timeout(kTimeoutUs));
  permit.begin(7, 1000);
  permit.confirm(0);
  permit.skip_wait(500);
  EXPECT_TRUE(permit.allows(500));
  permit.skip_wait(600);
  EXPECT_EQ(permit.from_us(), 500);
}

}  // namespace
}  // namespace server::cluster
