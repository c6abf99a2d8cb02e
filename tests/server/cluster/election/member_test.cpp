// SPDX-License-Identifier: MIT
#include "server/cluster/election/member.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/server/cluster/election/member_fixture.h"

namespace server::cluster {
namespace {

TEST_F(MemberTest, WithoutATopologyItDoesNothing) {
  be(kA);
  see_alive({});
  pass(kSecondUs);
  EXPECT_TRUE(actions_.empty());
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone);
}

TEST_F(MemberTest, AStartedLeaderWritesANewEpochFirst) {
  be(kA);
  see(sample_topology(), 10);
  EXPECT_EQ(last<Promote>().epoch, 0U) << "replicas may have more than it has";
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.revision, 10U);
  EXPECT_EQ(change.topology.shard("s1")->epoch, 8U);
  confirm();
  EXPECT_FALSE(member_->permit().is_held());
  commit(11);
  EXPECT_EQ(last<Promote>().epoch, 8U);
  EXPECT_EQ(last<KeepEpoch>().epoch, 8U);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  confirm();
  EXPECT_EQ(member_->permit().from_us(), now_us_ + kTimes.wait_us);
}

TEST_F(MemberTest, RestartedLeaderDoesNotServeItsOldEpoch) {
  be(kA, "s1", 8);
  pass(0);
  Topology old = sample_topology();
  old.shard("s1")->leader = kB;
  see(old, 10);
  Topology next = sample_topology();
  next.shard("s1")->epoch = 8;
  see(next, 12);
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->epoch, 9U);
  confirm();
  EXPECT_FALSE(member_->permit().is_held());
}

TEST_F(MemberTest, ADeposedLeaderFollowsAndServesNothing) {
  lead();
  Topology next = member_->topology().topology;
  next.shard("s1")->leader = kB;
  next.shard("s1")->epoch = 9;
  see(next, 20);
  EXPECT_EQ(member_->service(now_us_), MemberService::kNone);
  EXPECT_EQ(member_->permit().until_us(), 0);
  EXPECT_EQ(last<Follow>().leader, kB);
  EXPECT_EQ(last<Follow>().epoch, 9U);
}

TEST_F(MemberTest, DoesNotFollowALeaderOfAnEpochBeforeItsOwn) {
  be(kB, "s1", 8);
  see(sample_topology(), 10);
  EXPECT_TRUE(all<Follow>().empty());
  Topology next = sample_topology();
  next.shard("s1")->epoch = 8;
  see(next, 11);
  EXPECT_EQ(last<Follow>().epoch, 8U);
}

TEST_F(MemberTest, OlderTopologiesAreIgnored) {
  lead();
  Topology old = sample_topology();
  old.shard("s1")->leader = kB;
  see(old, 9);
  EXPECT_TRUE(member_->leads());
}

TEST_F(MemberTest, AnUnknownOutcomeIsReadUntilItIsKnown) {
  replicate();
  connect();
  see_alive({kB});
  pass(kSecondUs);
  const auto change = last<ChangeTopology>();
  member_->topology_changed(now_us_, change.call, ChangeOutcome::kUnknown);
  run();
  EXPECT_FALSE(member_->promise(now_us_, "s1", 7));
  EXPECT_EQ(last<ReadTopology>().known_revision, 10U);
  confirm();
  const auto again = last<ChangeTopology>();
  EXPECT_NE(again.call, change.call);
  EXPECT_EQ(again.revision, change.revision);
  EXPECT_EQ(again.topology, change.topology);
  member_->topology_changed(now_us_, again.call, ChangeOutcome::kUnknown);
  see(change.topology, 11);
  EXPECT_TRUE(member_->leads()) << "the first one was carried out late";
}

TEST_F(MemberTest, ALeaderPromisesNothing) {
  lead();
  EXPECT_FALSE(member_->promise(now_us_, "s1", 8));
  EXPECT_FALSE(member_->promise(now_us_, "s1", 9));
}

TEST_F(MemberTest, RemovedNodeFollowsNoLeader) {
  replicate();
  Topology next = sample_topology();
  next.shard("s1")->members = {kA};
  next.shard("s1")->insync = {kA};
  std::erase_if(next.nodes, [](const Node& node) { return node.id == kB; });
  see(next, 11);
  EXPECT_EQ(last<Follow>().leader, "");
}

// After a restore from a backup, etcd has an older topology than the member.
TEST_F(MemberTest, OlderTopologyConfirmsNothing) {
  lead();
  facts_.replicas = {{kB, 1000, true}};
  pass(kTimes.ask_us);
  member_->topology_read(now_us_, last<ReadTopology>().call, ReadOutcome::kChanged,
                         {sample_topology(), 9});
  run();
  EXPECT_EQ(member_->topology_fault(), TopologyFault::kOlder);
  EXPECT_EQ(member_->topology().revision, 11U);
  EXPECT_TRUE(member_->leads());
  // If a read of etcd returns an older topology, the read does not renew the leader's permit to
  // serve writes. So the leader asks its replicas to promise that they start no takeover, as if
  // etcd were unreachable.
  for (int i = 0; i < 5; ++i) pass(kTimes.ask_us);
  EXPECT_FALSE(all<AskPromise>().empty());
}

TEST_F(MemberTest, OlderTopologyEndsAPendingTakeover) {
  replicate();
  connect();
  see_alive({kB});
  pass(kSecondUs);
  member_->topology_changed(now_us_, last<ChangeTopology>().call, ChangeOutcome::kUnknown);
  run();
  EXPECT_FALSE(member_->promise(now_us_, "s1", 7));
  member_->topology_read(now_us_, last<ReadTopology>().call, ReadOutcome::kChanged,
                         {sample_topology(), 9});
  run();
  EXPECT_EQ(member_->topology_fault(), TopologyFault::kOlder);
  EXPECT_TRUE(member_->promise(now_us_, "s1", 7)) << "the leader is alive";
}

TEST_F(MemberTest, ReplicaOfAnOlderTopologyDoesNotCampaign) {
  replicate();
  connect();
  member_->topology_checked(now_us_, 10, ReadOutcome::kChanged, {sample_topology(), 9});
  see_alive({kB});
  for (int i = 0; i < 20; ++i) pass(kSecondUs);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  Topology recovered = sample_topology();
  for (Shard& shard : recovered.shards) ++shard.epoch;
  see(recovered, 9);
  pass(kSecondUs);
  EXPECT_EQ(last<ChangeTopology>().revision, 9U);
}

TEST_F(MemberTest, LeaderOfAnOlderTopologyWritesNoEpoch) {
  be(kA);
  facts_.present_until_us = 0;
  pass(0);
  see(sample_topology(), 10);
  member_->topology_checked(now_us_, 10, ReadOutcome::kChanged, {sample_topology(), 9});
  facts_.present_until_us = INT64_MAX;
  for (int i = 0; i < 20; ++i) pass(kSecondUs);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  Topology recovered = sample_topology();
  for (Shard& shard : recovered.shards) ++shard.epoch;
  see(recovered, 9);
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.revision, 9U);
  EXPECT_EQ(change.topology.shard("s1")->epoch, 9U);
}

TEST_F(MemberTest, RecoveredTopologyIsTakenOverAtALowerRevision) {
  lead();
  Topology recovered = member_->topology().topology;
  member_->topology_checked(now_us_, 11, ReadOutcome::kAbsent);
  EXPECT_EQ(member_->topology_fault(), TopologyFault::kAbsent);
  see(recovered, 3);
  EXPECT_EQ(member_->topology().revision, 11U) << "its epochs have not grown";
  for (Shard& shard : recovered.shards) ++shard.epoch;
  see(recovered, 4);
  EXPECT_EQ(member_->topology().revision, 4U);
  EXPECT_EQ(member_->topology_fault(), TopologyFault::kNone);
}

TEST_F(MemberTest, RecoveredTopologyMayHaveTheKnownRevision) {
  replicate();
  connect();
  see_alive({kB});
  pass(kSecondUs);
  member_->topology_changed(now_us_, last<ChangeTopology>().call, ChangeOutcome::kUnknown);
  run();
  Topology recovered = sample_topology();
  for (Shard& shard : recovered.shards) ++shard.epoch;
  see(recovered, 10);
  EXPECT_EQ(member_->topology().topology, recovered);
  confirm();
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->epoch, 9U) << "of the recovered topology";
}

TEST_F(MemberTest, LateReadIsNoOlderTopology) {
  lead();
  member_->topology_checked(now_us_, 10, ReadOutcome::kChanged, {sample_topology(), 10});
  EXPECT_EQ(member_->topology_fault(), TopologyFault::kNone);
}

TEST_F(MemberTest, LeaderPutsADeletedTopologyBack) {
  lead();
  member_->topology_deleted(now_us_);
  run();
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.revision, 0U) << "only where there is none";
  EXPECT_EQ(change.topology, member_->topology().topology);
  commit(20);
  EXPECT_EQ(member_->topology_fault(), TopologyFault::kNone);
  EXPECT_EQ(member_->service(now_us_), MemberService::kServes);
}

TEST_F(MemberTest, ReplicaPutsNothingBack) {
  replicate();
  member_->topology_deleted(now_us_);
  pass(kTimes.ask_us);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  EXPECT_EQ(member_->topology_fault(), TopologyFault::kAbsent);
}

}  // namespace
}  // namespace server::cluster
