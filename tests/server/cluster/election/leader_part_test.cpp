// SPDX-License-Identifier: MIT
#include "server/cluster/election/leader_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/server/cluster/election/member_fixture.h"

namespace server::cluster {
namespace {

class LeaderPartTest : public MemberTest {
 protected:
  // Makes the member act as node a, which leads at epoch 8 while no other member is in sync.
  void lead_alone() {
    be(kA);
    Topology alone = sample_topology();
    alone.shard("s1")->insync = {kA};
    see(alone, 10);
    commit(11);
  }
};

TEST_F(LeaderPartTest, ServesAfterTheWaitWhileEtcdConfirms) {
  lead();
  pass(kTimes.length_us - 1);
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
  pass(1);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits) << "an answer may be on its way";
  pass(4 * kTimes.ask_us);
  EXPECT_EQ(member_->service(now_us_), MemberService::kDown);
  confirm();
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

TEST_F(LeaderPartTest, ResumedLeaderHoldsClientsUntilEtcdAnswers) {
  lead();
  now_us_ += 15 * kSecondUs;
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  pass(0);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  Topology taken_over = sample_topology();
  taken_over.shard("s1")->leader = kB;
  taken_over.shard("s1")->epoch = 9;
  see(taken_over, 12);
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone);
}

TEST_F(LeaderPartTest, AConfirmationCountsFromWhenTheQuestionWasSent) {
  lead();
  pass(kTimes.ask_us);
  const auto read = last<ReadTopology>();
  const int64_t sent_us = now_us_;
  now_us_ += kSecondUs;
  member_->topology_read(now_us_, read.call, ReadOutcome::kUnchanged);
  EXPECT_EQ(member_->permit().until_us(), sent_us + kTimes.length_us);
}

TEST_F(LeaderPartTest, CountsOnlyKnownAnswersAndEachOnce) {
  lead();
  const int64_t until_us = member_->permit().until_us();
  pass(kTimes.ask_us);
  const auto read = last<ReadTopology>();
  member_->topology_read(now_us_, read.call, ReadOutcome::kUnknown);
  member_->topology_read(now_us_, read.call, ReadOutcome::kUnchanged);
  EXPECT_EQ(member_->permit().until_us(), until_us);
}

TEST_F(LeaderPartTest, NoPermitBeforeTheEpochIsOnTheDisk) {
  keeps_ = false;
  be(kA);
  see(sample_topology(), 10);
  commit(11);
  confirm();
  EXPECT_FALSE(member_->permit().is_held());
  pass(2 * kSecondUs);
  EXPECT_EQ(all<KeepEpoch>().size(), 3U) << "tried again";
  member_->epoch_kept(now_us_, "s1", 8);
  EXPECT_TRUE(member_->permit().is_held());
}

TEST_F(LeaderPartTest, WithoutEtcdEveryMemberInSyncMustPromise) {
  lead();
  pass(2 * kTimes.ask_us);
  EXPECT_TRUE(all<AskPromise>().empty());
  pass(kTimes.ask_us);
  const auto ask = last<AskPromise>();
  const int64_t sent_us = now_us_;
  EXPECT_EQ(std::tie(ask.peer, ask.shard, ask.epoch), std::tuple(kB, "s1", 8U));
  pass(1000);
  member_->promise_answered(now_us_, ask.call, kB, false);
  member_->promise_answered(now_us_, ask.call, kC, true);
  EXPECT_LT(member_->permit().until_us(), sent_us + kTimes.length_us);
  member_->promise_answered(now_us_, ask.call, kB, true);
  EXPECT_EQ(member_->permit().until_us(), sent_us + kTimes.length_us);
}

TEST_F(LeaderPartTest, WithoutEtcdALeaderAloneServesOn) {
  lead_alone();
  pass(kTimes.wait_us);
  confirm();
  for (int i = 0; i < 60; ++i) pass(kSecondUs / 2);
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

// Another process with the leader's id may have started while this leader was stopped. Only etcd
// knows whether such a process exists.
TEST_F(LeaderPartTest, ALeaderAloneThatWasStoppedHearsEtcdFirst) {
  lead_alone();
  pass(kTimes.wait_us);
  confirm();
  pass(15 * kSecondUs);
  EXPECT_NE(member_->service(now_us_), MemberService::kServes);
  for (int i = 0; i < 4; ++i) pass(kTimes.ask_us / 2);
  EXPECT_NE(member_->service(now_us_), MemberService::kServes) << "an answer may be on its way";
  pass(kTimes.ask_us / 2);
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes) << "etcd is away";
}

TEST_F(LeaderPartTest, WithoutAKeyOfItsOwnALeaderWritesNoEpoch) {
  be(kA);
  facts_.present_until_us = 0;
  pass(0);
  see(sample_topology(), 10);
  for (int i = 0; i < 20; ++i) pass(kTimes.ask_us);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  EXPECT_FALSE(member_->permit().is_held());
  EXPECT_EQ(member_->service(now_us_), MemberService::kDown);
  facts_.present_until_us = now_us_ + kSecondUs;
  pass(0);
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.topology.shard("s1")->epoch, 8U);
  EXPECT_TRUE(change.needs_own_alive);
  // etcd refuses the change of the topology, because the node's lease has ended. The node does not
  // know yet that its lease has ended.
  for (int i = 0; i < 10; ++i) {
    member_->topology_changed(now_us_, last<ChangeTopology>().call, ChangeOutcome::kRefused);
    pass(1000);
  }
  EXPECT_EQ(all<ChangeTopology>().size(), 1U) << "not as fast as etcd answers";
  pass(kTimes.ask_us);
  EXPECT_EQ(all<ChangeTopology>().size(), 2U);
}

TEST_F(LeaderPartTest, RejectsAnEpochWrittenByAnotherProcess) {
  lead();
  Topology taken_over = sample_topology();
  taken_over.shard("s1")->epoch = 9;
  see(taken_over, 12);
  EXPECT_FALSE(member_->permit().is_held());
  EXPECT_EQ(last<Promote>().epoch, 0U) << "its replicas may have more than it has";
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.topology.shard("s1")->epoch, 10U);
  EXPECT_TRUE(change.needs_own_alive);
  commit(13);
  pass(kTimes.wait_us);
  confirm();
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

TEST_F(LeaderPartTest, TheSecondProcessOfAnIdTakesNoHandoverOver) {
  be(kB);
  facts_.present_until_us = 0;
  pass(0);
  see(sample_topology(), 10);
  Topology handed_over = sample_topology();
  handed_over.shard("s1")->leader = kB;
  handed_over.shard("s1")->epoch = 8;
  see(handed_over, 11);
  for (int i = 0; i < 20; ++i) {
    pass(kTimes.ask_us);
    confirm();
  }
  EXPECT_FALSE(member_->permit().is_held());
  EXPECT_TRUE(all<ChangeTopology>().empty());
}

TEST_F(LeaderPartTest, AMemberThatMayHaveJoinedMustPromiseToo) {
  lead_alone();
  facts_.replicas = {{kB, 1000, true}};
  pass(kTimes.wait_us);
  confirm();
  pass(1000);
  const auto change = last<ChangeTopology>();
  ASSERT_EQ(change.topology.shard("s1")->insync, (std::vector{kA, kB}));
  member_->topology_changed(now_us_, change.call, ChangeOutcome::kUnknown);
  pass(3 * kTimes.ask_us);
  EXPECT_EQ(last<AskPromise>().peer, kB);
}

TEST_F(LeaderPartTest, ALeaderThatNeverHeardOfEtcdAsksNoPromises) {
  be(kA, "s1", 7);
  see(sample_topology(), 1);
  for (int i = 0; i < 20; ++i) pass(kSecondUs);
  EXPECT_TRUE(all<AskPromise>().empty());
  EXPECT_EQ(member_->service(now_us_), MemberService::kDown);
}

TEST_F(LeaderPartTest, AHandoverResignsBeforeItNamesTheSuccessor) {
  lead();
  EXPECT_EQ(member_->successor(), kB);
  ASSERT_TRUE(member_->hand_over(now_us_, kB));
  run();
  EXPECT_EQ(all<HoldWrites>().size(), 1U);
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
  facts_.position.offset = 2000;
  writes_held(2000);
  pass(1000);
  EXPECT_TRUE(all<ReportResigned>().empty()) << "the replica lacks something";
  facts_.replicas[0].acked = 2000;
  pass(1000);
  EXPECT_EQ(last<ReportResigned>().epoch, 8U);
  EXPECT_EQ(member_->permit().until_us(), 0);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.topology.shard("s1")->leader, kB);
  EXPECT_EQ(change.topology.shard("s1")->epoch, 9U);
  commit(12);
  EXPECT_EQ(last<Follow>().leader, kB);
  EXPECT_EQ(all<ReleaseWrites>().size(), 1U);
}

TEST_F(LeaderPartTest, ClientsWaitUntilTheSuccessorServes) {
  const auto hand_over = [this] {
    lead();
    EXPECT_TRUE(member_->hand_over(now_us_, kB));
    writes_held(1000);
    run();
    commit(12);
  };
  hand_over();
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  member_->successor_serves(now_us_, "s1", 7);
  member_->successor_serves(now_us_, "s2", 8);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  member_->successor_serves(now_us_, "s1", 8);
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone) << "now they are redirected";
  hand_over();
  pass(Succession::kHoldUs);
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone) << "however long that takes";
}

TEST_F(LeaderPartTest, SuccessorMayServeBeforeEtcdAnswers) {
  lead();
  ASSERT_TRUE(member_->hand_over(now_us_, kB));
  writes_held(1000);
  run();
  member_->successor_serves(now_us_, "s1", 8);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  commit(12);
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone);
}

TEST_F(LeaderPartTest, SuccessorHoldsClientsOnceItIsNamed) {
  replicate();
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone);
  member_->resigned(now_us_, "s1", 6);
  member_->resigned(now_us_, "s2", 7);
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone);
  member_->resigned(now_us_, "s1", 7);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  // etcd has refused the resignation, and the leader continues in a new epoch.
  Topology next = sample_topology();
  next.shard("s1")->epoch = 8;
  see(next, 11);
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone);
  member_->resigned(now_us_, "s1", 8);
  pass(Succession::kHoldUs);
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone) << "etcd has not named it";
}

TEST_F(LeaderPartTest, TheSuccessorOfAResignedLeaderDoesNotWait) {
  replicate();
  Topology next = sample_topology();
  next.shard("s1")->leader = kB;
  next.shard("s1")->epoch = 8;
  member_->resigned(now_us_, "s1", 7);
  see(next, 11);
  confirm();
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

TEST_F(LeaderPartTest, NewsOfTheResignationMayComeLast) {
  replicate();
  Topology next = sample_topology();
  next.shard("s1")->leader = kB;
  next.shard("s1")->epoch = 8;
  see(next, 11);
  confirm();
  member_->resigned(now_us_, "s1", 6);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  member_->resigned(now_us_, "s2", 7);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  member_->resigned(now_us_, "s1", 7);
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

TEST_F(LeaderPartTest, AHandoverThatFailsEarlyChangesNothing) {
  lead();
  ASSERT_TRUE(member_->hand_over(now_us_, kB));
  EXPECT_FALSE(member_->hand_over(now_us_, kB));
  writes_held(5000);
  pass(kSecondUs - 1);
  EXPECT_TRUE(all<ReleaseWrites>().empty());
  pass(1);
  EXPECT_EQ(all<ReleaseWrites>().size(), 1U);
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

// A command may run for longer than a handover. Its end belongs to the handover that waited for it.
TEST_F(LeaderPartTest, EndOfEarlierHandoverCountsNotForNext) {
  lead();
  ASSERT_TRUE(member_->hand_over(now_us_, kB));
  run();
  const uint64_t first = last<HoldWrites>().handover;
  pass(kSecondUs);
  ASSERT_EQ(all<ReleaseWrites>().size(), 1U);
  confirm();
  ASSERT_TRUE(member_->hand_over(now_us_, kB));
  run();
  member_->writes_held(now_us_, first, 1000);
  run();
  EXPECT_TRUE(all<ReportResigned>().empty()) << "later writes still run";
  writes_held(1000);
  run();
  EXPECT_EQ(all<ReportResigned>().size(), 1U);
}

TEST_F(LeaderPartTest, HandoverIsRequestedAgainAfterAnotherChange) {
  lead();
  ASSERT_TRUE(member_->hand_over(now_us_, kB));
  writes_held(1000);
  run();
  ASSERT_EQ(last<ChangeTopology>().revision, 11U);
  Topology other = member_->topology().topology;
  ++other.shard("s2")->epoch;
  see(other, 12);
  refuse();
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.revision, 12U);
  EXPECT_EQ(change.topology.shard("s1")->leader, kB);
  EXPECT_EQ(change.topology.shard("s1")->epoch, 9U);
  commit(13);
  EXPECT_EQ(last<Follow>().leader, kB);
}

TEST_F(LeaderPartTest, AResignedLeaderServesAgainOnlyInANewEpoch) {
  lead();
  ASSERT_TRUE(member_->hand_over(now_us_, kB));
  writes_held(1000);
  run();
  pass(kSecondUs);
  refuse();
  confirm();
  EXPECT_EQ(member_->permit().until_us(), 0);
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.topology.shard("s1")->leader, kA);
  EXPECT_EQ(change.topology.shard("s1")->epoch, 9U);
  commit(13);
  EXPECT_EQ(all<ReleaseWrites>().size(), 1U);
  confirm();
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes) << "it resigned itself";
}

TEST_F(LeaderPartTest, HandsOverOnlyToSyncedMembersWithEtcd) {
  lead();
  EXPECT_FALSE(member_->hand_over(now_us_, kA));
  EXPECT_FALSE(member_->hand_over(now_us_, kC));
  pass(5 * kTimes.ask_us / 2);
  EXPECT_FALSE(member_->hand_over(now_us_, kB));
  confirm();
  EXPECT_TRUE(member_->hand_over(now_us_, kB));
}

TEST_F(LeaderPartTest, NamesNoSuccessorWhoseLogFails) {
  lead();
  facts_.replicas[0].log_works = false;
  pass(0);
  EXPECT_EQ(member_->successor(), "");
  const auto refused = member_->hand_over(now_us_, kB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, kLogOfNodeFails);
  EXPECT_TRUE(all<HoldWrites>().empty());
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->insync, std::vector{kA});
}

TEST_F(LeaderPartTest, HandoverEndsWhenTheSuccessorsLogFails) {
  lead();
  facts_.position.offset = 2000;
  ASSERT_TRUE(member_->hand_over(now_us_, kB));
  writes_held(2000);
  // The replica has acknowledged the whole stream, but now reports that its append log fails.
  facts_.replicas = {{kB, 2000, true, false}};
  pass(1000);
  EXPECT_TRUE(all<ReportResigned>().empty());
  EXPECT_EQ(all<ReleaseWrites>().size(), 1U) << "without waiting for the deadline";
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

TEST_F(LeaderPartTest, EndingLeaderDropsMembersWhoseLogsFail) {
  lead();
  facts_.replicas[0].log_works = false;
  member_->tick(now_us_, facts_);
  member_->close_list(now_us_, 1000);
  run();
  EXPECT_FALSE(member_->may_leave()) << "a restart of the replica would lose what it has";
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->insync, std::vector{kA});
}

TEST_F(LeaderPartTest, AnEndingLeaderTakesLaggingMembersOffTheList) {
  lead();
  facts_.replicas = {{kB, 999, true}};
  pass(0);
  EXPECT_FALSE(member_->may_leave()) << "not asked yet";
  member_->close_list(now_us_, 1000);
  run();
  pass(kLastAckUs - 1);
  EXPECT_FALSE(member_->may_leave());
  EXPECT_EQ(all<ChangeTopology>().size(), 1U) << "of its epoch alone";
  pass(1);
  EXPECT_FALSE(member_->may_leave());
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->insync, std::vector{kA});
  commit(12);
  EXPECT_TRUE(member_->may_leave());
  // The replica has caught up. The leader does not add it to the list of members in sync, because
  // close_list() was called.
  facts_.replicas = {{kB, 1000, true}};
  pass(kTimes.ask_us);
  EXPECT_EQ(all<ChangeTopology>().size(), 2U);
}

TEST_F(LeaderPartTest, AnEndingLeaderWaitsForTheLastAck) {
  lead();
  facts_.replicas = {{kB, 999, true}};
  pass(0);
  member_->close_list(now_us_, 1000);
  pass(kLastAckUs - 1);
  EXPECT_FALSE(member_->may_leave());
  facts_.replicas = {{kB, 1000, true}};
  pass(0);
  EXPECT_TRUE(member_->may_leave());
  pass(kLastAckUs);
  EXPECT_EQ(all<ChangeTopology>().size(), 1U) << "of its epoch alone";
}

// After the list is closed, the server closes the links of its replicas.
TEST_F(LeaderPartTest, AClosedListKeepsMembersWhoseLinksEnd) {
  lead();
  member_->close_list(now_us_, 1000);
  run();
  ASSERT_TRUE(member_->may_leave());
  facts_.replicas.clear();
  pass(kLastAckUs);
  EXPECT_TRUE(member_->may_leave());
  EXPECT_EQ(all<ChangeTopology>().size(), 1U) << "of its epoch alone";
}

TEST_F(LeaderPartTest, AListThatCannotBeClosedIsLeftAsItIs) {
  lead();
  facts_.replicas[0].acked = 999;
  pass(0);
  member_->close_list(now_us_, 1000);
  pass(kCloseListUs);
  facts_.replicas.clear();
  pass(0);
  EXPECT_FALSE(member_->may_leave());
  EXPECT_EQ(all<ChangeTopology>().size(), 1U) << "of its epoch alone";
}

TEST_F(LeaderPartTest, EndingLeaderDropsMembersThatAreGone) {
  lead();
  facts_.replicas = {{kB, 999, true}};
  pass(0);
  member_->close_list(now_us_, 1000);
  facts_.replicas[0].is_online = false;
  pass(1000);
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->insync, std::vector{kA});
}

TEST_F(LeaderPartTest, AnEndingLeaderKeepsWholeCopiesOnTheList) {
  lead();
  member_->close_list(now_us_, 1000);
  run();
  EXPECT_TRUE(member_->may_leave());
  EXPECT_EQ(all<ChangeTopology>().size(), 1U) << "of its epoch alone";
}

TEST_F(LeaderPartTest, WithoutEtcdTheListStaysOpen) {
  lead();
  facts_.replicas.clear();
  pass(kTimes.wait_us + kTimes.length_us);
  member_->close_list(now_us_, 1000);
  run();
  EXPECT_FALSE(member_->may_leave());
}

TEST_F(LeaderPartTest, NoPermitBeforeTheServerHasTheRole) {
  be(kA);
  promotes_ = false;
  see(sample_topology(), 10);
  commit(11);
  for (int i = 0; i < 10; ++i) {
    pass(kTimes.wait_us);
    confirm();
  }
  EXPECT_FALSE(member_->permit().is_held());
  facts_.led_epoch = 7;
  pass(0);
  EXPECT_FALSE(member_->permit().is_held()) << "the role of an earlier epoch";
  facts_.led_epoch = 8;
  pass(0);
  confirm();
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

}  // namespace
}  // namespace server::cluster
