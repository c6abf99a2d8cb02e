// SPDX-License-Identifier: MIT
#include "server/durability/log/sync_pacing.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(SyncPacingTest, ADiskIsSlowUntilItHasShownOtherwise) {
  SyncPacing pacing;
  EXPECT_FALSE(pacing.is_quick());
  for (int i = 0; i < 100; ++i) pacing.record_sync(100);
  EXPECT_TRUE(pacing.is_quick());
  pacing.record_sync(100'000);
  EXPECT_FALSE(pacing.is_quick());
}

TEST(SyncPacingTest, TheNextSyncWaitsForAsManyAsTheLastOneAnswered) {
  SyncPacing pacing;
  EXPECT_EQ(pacing.add(1), 1U);
  EXPECT_TRUE(pacing.are_enough()) << "the first wakes the thread";
  pacing.add(2);
  EXPECT_EQ(pacing.begin(), 3U);
  pacing.add(1);
  EXPECT_FALSE(pacing.are_enough()) << "a sync is under way: the thread looks by itself";
  pacing.end(3, 100);
  EXPECT_FALSE(pacing.are_enough());
  EXPECT_EQ(pacing.gather_time().count(), 200);
  pacing.add(2);
  EXPECT_TRUE(pacing.are_enough());
}

TEST(SyncPacingTest, SingleClientDoesNotWait) {
  SyncPacing pacing;
  pacing.add(1);
  pacing.end(pacing.begin(), 100);
  EXPECT_EQ(pacing.gather_time().count(), 0);
  pacing.add(1);
  EXPECT_TRUE(pacing.are_enough());
}

TEST(SyncPacingTest, GatherTimeIsAtMostOneMillisecond) {
  SyncPacing pacing;
  pacing.add(2);
  pacing.end(pacing.begin(), 1'000'000);
  EXPECT_EQ(pacing.gather_time().count(), 1000);
  pacing.stop_gathering();
  EXPECT_EQ(pacing.gather_time().count(), 0);
}

TEST(SyncPacingTest, AfterASyncOfAnIoThreadTheFirstWhoWaitsCounts) {
  SyncPacing pacing;
  pacing.add(5);
  pacing.end(pacing.begin(), 10);
  pacing.add(1);
  pacing.begin_here();
  pacing.end_here();
  EXPECT_FALSE(pacing.are_enough());
  pacing.add(1);
  EXPECT_TRUE(pacing.are_enough());
  pacing.forget();
  EXPECT_FALSE(pacing.are_enough());
}

}  // namespace
}  // namespace server
