// SPDX-License-Identifier: MIT
#include "server/cluster/election/joining_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

class JoiningListTest : public ::testing::Test {
 protected:
  JoiningListTest() { shard_.insync = {id_of('a')}; }

  std::vector<std::string> step(uint64_t offset, uint64_t acked, uint64_t tick) {
    const ReplicationFacts facts{true, {7, offset}, {{id_of('b'), acked, true}}};
    return list_.step(shard_, {id_of('a'), id_of('b')}, facts, tick);
  }

  Shard shard_ = sample_topology().shards[0];
  JoiningList list_;
  const std::vector<std::string> alone_{id_of('a')};
  const std::vector<std::string> both_{id_of('a'), id_of('b')};
};

TEST_F(JoiningListTest, MemberJoinsWithAllAcknowledgedWrites) {
  EXPECT_EQ(step(100, 100, 1), alone_);
  EXPECT_EQ(list_.ids(), std::vector{id_of('b')}) << "replies wait for it from now on";
  EXPECT_EQ(step(100, 100, 1), alone_) << "these facts are older than the wait";
  EXPECT_EQ(step(150, 100, 2), alone_) << "150 may have been acknowledged without it";
  EXPECT_EQ(step(200, 149, 3), alone_);
  EXPECT_EQ(step(200, 150, 4), both_);
}

TEST_F(JoiningListTest, ListedMemberIsForgotten) {
  (void)step(100, 100, 1);
  shard_.insync = both_;
  EXPECT_EQ(step(100, 0, 2), both_);
  EXPECT_TRUE(list_.ids().empty());
}

TEST_F(JoiningListTest, UnwantedMemberStartsAgain) {
  (void)step(100, 100, 1);
  (void)step(100, 100, 2);
  EXPECT_EQ(list_.step(shard_, alone_, {}, 3), alone_);
  EXPECT_TRUE(list_.ids().empty());
  EXPECT_EQ(step(100, 100, 4), alone_);
}

}  // namespace
}  // namespace server::cluster
