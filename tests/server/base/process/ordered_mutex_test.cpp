// SPDX-License-Identifier: MIT
#include "server/base/process/ordered_mutex.h"

#include <gtest/gtest.h>

#include <mutex>

namespace server {
namespace {

TEST(OrderedMutexTest, LaterRankMayBeWaitedFor) {
  HeldLocks held;
  EXPECT_TRUE(held.may_wait_for(LockRank::kShutdown));
  held.add(LockRank::kStream);
  EXPECT_TRUE(held.may_wait_for(LockRank::kSaves));
  EXPECT_FALSE(held.may_wait_for(LockRank::kStream)) << "it is held already";
  EXPECT_FALSE(held.may_wait_for(LockRank::kShutdown));
  held.add(LockRank::kLeader);
  held.remove(LockRank::kStream);
  EXPECT_FALSE(held.may_wait_for(LockRank::kSaves)) << "the inner one is still held";
  held.remove(LockRank::kLeader);
  EXPECT_TRUE(held.may_wait_for(LockRank::kShutdown));
}

TEST(OrderedMutexTest, IsAMutex) {
  OrderedMutex outer(LockRank::kStream);
  OrderedMutex inner(LockRank::kLeader);
  const std::unique_lock first(outer);
  EXPECT_TRUE(outer.is_held());
  const std::unique_lock second(inner, std::try_to_lock);
  EXPECT_TRUE(second.owns_lock());
}

TEST(OrderedMutexTest, TryingMayBeOutOfOrder) {
  OrderedMutex outer(LockRank::kStream);
  OrderedMutex inner(LockRank::kLeader);
  const std::scoped_lock first(inner);
  EXPECT_TRUE(outer.try_lock());
  outer.unlock();
}

TEST(OrderedMutexDeathTest, ADebugBuildEndsAtAWrongOrder) {
  OrderedMutex outer(LockRank::kStream);
  OrderedMutex inner(LockRank::kLeader);
  EXPECT_DEBUG_DEATH(
      {
        const std::scoped_lock first(inner);
        const std::scoped_lock second(outer);
      },
      "may_wait_for");
}

}  // namespace
}  // namespace server
