// SPDX-License-Identifier: MIT
#include "server/cluster/election/kept_epoch.h"

#include <gtest/gtest.h>

namespace server::cluster {
namespace {

constexpr int64_t kAgainUs = 1'000'000;

TEST(KeptEpoch, AsksOnceForWhatIsNotOnTheDiskAndAgainLater) {
  KeptEpoch kept("s1", 7);
  std::vector<MemberAction> actions;
  kept.want(7);
  kept.step(0, actions);
  EXPECT_TRUE(actions.empty());
  kept.want(8);
  kept.step(0, actions);
  kept.step(kAgainUs - 1, actions);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<KeepEpoch>(actions[0]).epoch, 8U);
  kept.want(9);
  kept.step(kAgainUs - 1, actions);
  EXPECT_EQ(actions.size(), 2U) << "a higher one does not wait";
  kept.step(2 * kAgainUs, actions);
  EXPECT_EQ(actions.size(), 3U);
  kept.kept("s1", 9);
  kept.step(9 * kAgainUs, actions);
  EXPECT_EQ(actions.size(), 3U);
}

TEST(KeptEpoch, AnotherShardHasEpochsOfItsOwn) {
  KeptEpoch kept("s1", 7);
  kept.join("s1");
  EXPECT_EQ(kept.epoch(), 7U);
  kept.join("s2");
  EXPECT_EQ(kept.epoch(), 0U);
  kept.kept("s1", 9);
  EXPECT_EQ(kept.epoch(), 0U);
}

TEST(KeptEpoch, NeverFalls) {
  KeptEpoch kept("s1", 7);
  kept.kept("s1", 6);
  EXPECT_EQ(kept.epoch(), 7U);
}

}  // namespace
}  // namespace server::cluster
