// SPDX-License-Identifier: MIT
#include "server/cluster/election/offset_questions.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/cluster/election/member_fixture.h"

namespace server::cluster {
namespace {

class OffsetQuestionsTest : public MemberTest {};

// The leader's data directory is empty. So the leader does not know in which epoch it led.
TEST_F(OffsetQuestionsTest, EmptyLeaderLeavesShardToMembersInSync) {
  be(kA);
  facts_.has_whole_copy = false;
  pass(0);
  see(sample_topology(), 10);
  see_alive({kC});
  for (int i = 0; i < 100; ++i) pass(kSecondUs);
  EXPECT_TRUE(member_->has_lost_data(now_us_)) << "b may have the data, and is down";
  EXPECT_TRUE(all<ChangeTopology>().empty());
  EXPECT_EQ(last<Promote>().epoch, 0U) << "no replica copies its emptiness";
}

TEST_F(OffsetQuestionsTest, EmptyLeaderLeadsWhenNoMemberHasMore) {
  be(kA, "s1", 7);
  facts_.has_whole_copy = false;
  pass(0);
  see(sample_topology(), 10);
  see_alive({kB});
  pass(20 * kSecondUs - 1);
  EXPECT_TRUE(member_->has_lost_data(now_us_));
  EXPECT_TRUE(all<ChangeTopology>().empty());
  pass(1);
  EXPECT_FALSE(member_->has_lost_data(now_us_));
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->epoch, 8U);
}

TEST_F(OffsetQuestionsTest, ALeaderWithoutALogMayHaveLostItsNewestData) {
  be(kA, "s1", 7);
  facts_.keeps_log = false;
  pass(0);
  see(sample_topology(), 10);
  EXPECT_TRUE(member_->has_lost_data(now_us_));
  // This node is the only member in sync, so no other member has newer data. The node stays the
  // leader.
  be(kA, "s1", 7);
  facts_.keeps_log = false;
  pass(0);
  Topology alone = sample_topology();
  alone.shard("s1")->insync = {kA};
  see(alone, 10);
  EXPECT_FALSE(member_->has_lost_data(now_us_));
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->epoch, 8U);
}

TEST_F(OffsetQuestionsTest, PowerCutMakesLeaderAskBeforeItLeads) {
  is_same_boot_ = false;
  be(kA, "s1", 7);
  see(sample_topology(), 10);
  EXPECT_TRUE(member_->has_lost_data(now_us_));
  EXPECT_EQ(member_->offset(now_us_, "s1"), (HistoryPosition{7, 1000})) << "b must learn it";
  const auto ask = last<AskOffset>();
  EXPECT_EQ(ask.peer, kB);
  member_->offset_answered(now_us_, ask.call, kB, std::nullopt);
  pass(kTimes.ask_us - 1);
  EXPECT_EQ(all<AskOffset>().size(), 1U);
  pass(1);
  EXPECT_EQ(all<AskOffset>().size(), 2U) << "b may not take over yet";
  EXPECT_TRUE(all<ChangeTopology>().empty());
  // The answer to the first AskOffset arrives after the second one was sent.
  member_->offset_answered(now_us_, ask.call, kB, HistoryPosition{7, 1000});
  run();
  EXPECT_FALSE(member_->has_lost_data(now_us_));
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->epoch, 8U);
}

TEST_F(OffsetQuestionsTest, LeaderThatLacksTheNewestLeavesTheShard) {
  is_same_boot_ = false;
  be(kA, "s1", 7);
  see(sample_topology(), 10);
  constexpr int64_t kPatienceUs = 20 * kSecondUs;
  for (int64_t us = 0; us < kPatienceUs; us += kTimes.ask_us) {
    EXPECT_TRUE(member_->has_lost_data(now_us_));
    member_->offset_answered(now_us_, last<AskOffset>().call, kB, HistoryPosition{7, 1001});
    pass(kTimes.ask_us);
  }
  EXPECT_FALSE(member_->has_lost_data(now_us_)) << "b has not taken over";
  EXPECT_EQ(all<ChangeTopology>().size(), 1U);
}

// A process that has led a shard has all data of the shard in its memory. So it does not ask other
// members for their offsets, even if a power cut preceded its start.
TEST_F(OffsetQuestionsTest, LeaderThatHasLedAsksNoMember) {
  is_same_boot_ = false;
  be(kA);
  see(sample_topology(), 10);
  member_->offset_answered(now_us_, last<AskOffset>().call, kB, HistoryPosition{7, 1000});
  run();
  commit(11);
  Topology recovered = member_->topology().topology;
  recovered.shard("s1")->epoch = 9;
  see(recovered, 12);
  EXPECT_FALSE(member_->has_lost_data(now_us_));
  EXPECT_EQ(all<AskOffset>().size(), 1U);
}

TEST_F(OffsetQuestionsTest, RestartedLeaderSaysHowMuchItHas) {
  be(kA);
  facts_.present_until_us = 0;
  pass(0);
  see(sample_topology(), 10);
  EXPECT_EQ(member_->offset(now_us_, "s1"), (HistoryPosition{7, 1000}));
  facts_.has_whole_copy = false;
  pass(0);
  EXPECT_FALSE(member_->offset(now_us_, "s1"));
}

TEST_F(OffsetQuestionsTest, LeaderWithFailingLogHandsOver) {
  lead();
  EXPECT_FALSE(member_->offset(now_us_, "s1")) << "it leads";
  EXPECT_TRUE(all<AskOffset>().empty());
  facts_.log_works = false;
  pass(0);
  const auto ask = last<AskOffset>();
  EXPECT_EQ(ask.peer, kB);
  member_->offset_answered(now_us_, ask.call, kB, std::nullopt);
  run();
  EXPECT_TRUE(all<HoldWrites>().empty()) << "the replica cannot take over";
  pass(kSecondUs);
  confirm();
  EXPECT_EQ(all<AskOffset>().size(), 1U);
  pass(kSecondUs);
  confirm();
  pass(0);
  ASSERT_EQ(all<AskOffset>().size(), 2U);
  member_->offset_answered(now_us_, last<AskOffset>().call, kB, HistoryPosition{8, 1000});
  run();
  EXPECT_EQ(all<HoldWrites>().size(), 1U);
}

}  // namespace
}  // namespace server::cluster
