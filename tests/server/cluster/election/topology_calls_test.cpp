// SPDX-License-Identifier: MIT
#include "server/cluster/election/topology_calls.h"

#include <gtest/gtest.h>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

constexpr int64_t kAskUs = 500'000;

class TopologyCallsTest : public testing::Test {
 protected:
  std::vector<MemberAction> actions_;
  TopologyCalls calls_{actions_, kAskUs};
};

TEST_F(TopologyCallsTest, AReadIsAnsweredOnce) {
  calls_.read(100, 7, 10);
  const auto asked = std::get<ReadTopology>(actions_.back());
  EXPECT_EQ(asked.known_revision, 10U);
  const auto read = calls_.take_read(asked.call);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->sent_us, 100);
  EXPECT_EQ(read->led_epoch, 7U);
  EXPECT_FALSE(calls_.take_read(asked.call));
}

TEST_F(TopologyCallsTest, TheOldestReadsGiveWay) {
  for (int i = 0; i < 9; ++i) calls_.read(i, 7, 10);
  EXPECT_FALSE(calls_.take_read(std::get<ReadTopology>(actions_.front()).call));
  EXPECT_TRUE(calls_.take_read(std::get<ReadTopology>(actions_[1]).call));
}

TEST_F(TopologyCallsTest, AnUnknownChangeIsReadThenAskedForAgain) {
  calls_.change({0, 10, sample_topology()});
  const auto first = std::get<ChangeTopology>(actions_.back());
  EXPECT_TRUE(calls_.answered(first.call));
  calls_.step(1, 0, 10);
  calls_.unchanged(10);
  EXPECT_EQ(actions_.size(), 1U) << "it may still be answered";
  calls_.unknown(1);
  calls_.step(1, 0, 10);
  EXPECT_TRUE(std::holds_alternative<ReadTopology>(actions_.back()));
  calls_.step(kAskUs, 0, 10);
  EXPECT_EQ(actions_.size(), 2U);
  calls_.unchanged(9);
  EXPECT_EQ(actions_.size(), 2U) << "what an older read found";
  calls_.unchanged(10);
  const auto again = std::get<ChangeTopology>(actions_.back());
  EXPECT_EQ(again.revision, 10U);
  EXPECT_FALSE(calls_.answered(first.call));
  EXPECT_TRUE(calls_.answered(again.call));
}

TEST_F(TopologyCallsTest, AChangeIsOverOnceEtcdHasAnotherRevision) {
  calls_.change({0, 10, sample_topology()});
  calls_.unknown(1);
  calls_.seen(10);
  EXPECT_TRUE(calls_.is_changing());
  EXPECT_EQ(calls_.changing()->revision, 10U);
  calls_.seen(11);
  EXPECT_FALSE(calls_.is_changing());
  EXPECT_EQ(calls_.changing(), nullptr);
}

}  // namespace
}  // namespace server::cluster
