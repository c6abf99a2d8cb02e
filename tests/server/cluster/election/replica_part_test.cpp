// SPDX-License-Identifier: MIT
#include "server/cluster/election/replica_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/server/cluster/election/member_fixture.h"

namespace server::cluster {
namespace {

class ReplicaPartTest : public MemberTest {
 protected:
  // If the leader's key is missing in etcd, replicas wait this long for the leader to write it
  // again.
  static constexpr int64_t kGraceUs = 300'000;

  // Removes the leader's key from etcd, so that the replica prepares a takeover. The replica has
  // never connected to the leader and may lack many writes, so it first requests the leader's
  // replication offset. Returns this request.
  AskOffset ask_leader() {
    replicate();
    see_alive({kB, kC});
    pass(kGraceUs);
    return last<AskOffset>();
  }
};

TEST_F(ReplicaPartTest, AMemberInSyncTakesOverWhenTheLeadersKeyIsGone) {
  replicate();
  connect();
  pass(kSecondUs);
  see_alive({kB, kC});
  pass(kGraceUs - 1);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  pass(1);
  const auto change = last<ChangeTopology>();
  const Shard& shard = *change.topology.shard("s1");
  EXPECT_EQ(change.revision, 10U);
  EXPECT_EQ(change.gone, kA);
  EXPECT_TRUE(change.needs_own_alive);
  EXPECT_EQ(std::tie(shard.leader, shard.epoch, shard.insync), std::tuple(kB, 8U, std::vector{kB}));
  commit(11);
  EXPECT_EQ(last<Promote>().epoch, 8U);
  EXPECT_EQ(member_->permit().from_us(), now_us_ + kTimes.wait_us);
}

TEST_F(ReplicaPartTest, ALeaderWhoseKeyIsSoonBackStays) {
  replicate();
  for (int time = 0; time < 3; ++time) {
    see_alive({kB, kC});
    pass(kGraceUs - 1);
    see_alive({kA, kB, kC});
    pass(1);
  }
  pass(kSecondUs);
  EXPECT_TRUE(all<ChangeTopology>().empty());
}

TEST_F(ReplicaPartTest, ALeaderThatIsHeardHasLonger) {
  constexpr int64_t kHeardGraceUs = 2 * kSecondUs;
  replicate();
  facts_.hears_leader = true;
  see_alive({kB, kC});
  pass(kHeardGraceUs - 1);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  pass(1);
  EXPECT_EQ(last<ChangeTopology>().gone, kA);
}

TEST_F(ReplicaPartTest, ALeaderThatFallsSilentHasNoLonger) {
  replicate();
  facts_.hears_leader = true;
  see_alive({kB, kC});
  pass(kSecondUs);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  facts_.hears_leader = false;
  pass(1);
  EXPECT_EQ(last<ChangeTopology>().gone, kA);
}

TEST_F(ReplicaPartTest, ForcedFailoverSkipsTheWaitForTheLeadersKey) {
  replicate();
  see_alive({kB, kC});
  ASSERT_TRUE(member_->take_over(now_us_));
  run();
  EXPECT_EQ(all<ChangeTopology>().size(), 1U);
}

TEST_F(ReplicaPartTest, ARestartedOneStandsOnlyOnceItWasConnected) {
  const int64_t lease_of_the_dead_us = 40 * kTimes.ask_us;
  replicate();
  pass(lease_of_the_dead_us);
  see_alive({kB, kC});
  pass(10 * kGraceUs);
  EXPECT_TRUE(all<ChangeTopology>().empty()) << "its leader has lived while it lacked the stream";
  EXPECT_FALSE(member_->offset(now_us_, "s1"));
  ASSERT_TRUE(member_->take_over(now_us_));
  run();
  EXPECT_EQ(all<ChangeTopology>().size(), 1U) << "FORCE";
  replicate();
  facts_.hears_leader = true;
  pass(lease_of_the_dead_us);
  facts_.hears_leader = false;
  see_alive({kB, kC});
  pass(kGraceUs);
  EXPECT_EQ(all<ChangeTopology>().size(), 1U);
}

TEST_F(ReplicaPartTest, IneligibleReplicaDoesNotCampaign) {
  replicate();
  facts_.hears_leader = true;
  pass(0);
  facts_.hears_leader = false;
  facts_.has_whole_copy = false;
  pass(0);
  see_alive({kB, kC});
  pass(kGraceUs);
  EXPECT_TRUE(all<ChangeTopology>().empty()) << "no whole copy";
  EXPECT_FALSE(member_->offset(now_us_, "s1"));
  facts_.has_whole_copy = true;
  EXPECT_TRUE(member_->promise(now_us_, "s1", 7));
  pass(kTimes.promise_us - 1);
  EXPECT_TRUE(all<ChangeTopology>().empty()) << "promised";
  pass(1);
  EXPECT_EQ(all<ChangeTopology>().size(), 1U);
}

TEST_F(ReplicaPartTest, NewOrUnsyncedReplicaDoesNotCampaign) {
  be(kB);
  see(sample_topology(), 10);
  see_alive({kB});
  pass(kTimes.wait_us - 1);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  Topology other = sample_topology();
  other.shard("s1")->insync = {kA};
  see(other, 11);
  pass(10 * kSecondUs);
  EXPECT_TRUE(all<ChangeTopology>().empty());
}

TEST_F(ReplicaPartTest, ARefusedCandidateStartsAgain) {
  replicate();
  connect();
  see_alive({kB});
  pass(kGraceUs);
  member_->topology_changed(now_us_, last<ChangeTopology>().call, ChangeOutcome::kRefused);
  run();
  EXPECT_EQ(all<ChangeTopology>().size(), 1U);
  pass(kTimes.ask_us);
  EXPECT_EQ(all<ChangeTopology>().size(), 2U);
}

TEST_F(ReplicaPartTest, PromisesOnlyToTheNewestEpoch) {
  keeps_ = false;
  be(kB, "s1", 7);
  see(sample_topology(), 10);
  EXPECT_TRUE(member_->promise(now_us_, "s1", 7)) << "its epoch was kept in an earlier life";
  EXPECT_FALSE(member_->promise(now_us_, "s1", 6));
  EXPECT_FALSE(member_->promise(now_us_, "s2", 7));
  EXPECT_FALSE(member_->promise(now_us_, "s1", 8)) << "not on the disk yet";
  run();
  EXPECT_EQ(last<KeepEpoch>().epoch, 8U);
  member_->epoch_kept(now_us_, "s1", 8);
  EXPECT_TRUE(member_->promise(now_us_, "s1", 8));
  EXPECT_FALSE(member_->promise(now_us_, "s1", 7));
}

TEST_F(ReplicaPartTest, ForceIgnoresALiveLeaderButKeepsItsPromise) {
  replicate();
  EXPECT_TRUE(member_->promise(now_us_, "s1", 7));
  ASSERT_TRUE(member_->take_over(now_us_));
  run();
  EXPECT_TRUE(all<ChangeTopology>().empty());
  pass(kTimes.promise_us);
  const auto change = last<ChangeTopology>();
  EXPECT_EQ(change.gone, "");
  commit(11);
  EXPECT_EQ(member_->service(now_us_), MemberService::kWaits);
  EXPECT_FALSE(member_->take_over(now_us_));
}

TEST_F(ReplicaPartTest, YieldsToRestartedLeaderThatHasAll) {
  constexpr int kPatienceAsks = 50;
  const AskOffset ask = ask_leader();
  EXPECT_EQ(ask.peer, kA);
  const auto answer = [&] {
    member_->offset_answered(now_us_, last<AskOffset>().call, kA, HistoryPosition{7, 1000});
    run();
  };
  answer();
  for (int i = 1; i < kPatienceAsks; ++i) {
    pass(kTimes.ask_us);
    answer();
  }
  EXPECT_TRUE(all<ChangeTopology>().empty());
  pass(kTimes.ask_us);
  answer();
  EXPECT_EQ(all<ChangeTopology>().size(), 1U) << "the leader does not register";
}

TEST_F(ReplicaPartTest, LeaderThatRegistersEndsTheElection) {
  const AskOffset ask = ask_leader();
  member_->offset_answered(now_us_, ask.call, kA, HistoryPosition{7, 1000});
  see_alive({kA, kB, kC});
  pass(10 * kSecondUs);
  EXPECT_TRUE(all<ChangeTopology>().empty());
}

TEST_F(ReplicaPartTest, StandsIfRestartedLeaderHasLess) {
  const AskOffset ask = ask_leader();
  EXPECT_TRUE(all<ChangeTopology>().empty()) << "before the answer";
  member_->offset_answered(now_us_, ask.call, kA, HistoryPosition{7, 999});
  run();
  EXPECT_EQ(all<ChangeTopology>().size(), 1U);
}

TEST_F(ReplicaPartTest, StandsIfLeaderDoesNotAnswer) {
  (void)ask_leader();
  pass(kGraceUs - 1);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  pass(1);
  EXPECT_EQ(all<ChangeTopology>().size(), 1U);
}

TEST_F(ReplicaPartTest, AskedCandidateReadsLiveNodes) {
  replicate();
  connect();
  EXPECT_FALSE(member_->offset(now_us_, "s2"));
  run();
  EXPECT_TRUE(all<ReadLiveNodes>().empty()) << "another shard";
  EXPECT_TRUE(member_->offset(now_us_, "s1"));
  run();
  EXPECT_EQ(all<ReadLiveNodes>().size(), 1U);
  see_alive({kB, kC});
  EXPECT_TRUE(member_->offset(now_us_, "s1"));
  run();
  EXPECT_EQ(all<ReadLiveNodes>().size(), 1U) << "it knows that the leader is gone";
}

TEST_F(ReplicaPartTest, NodeWithFailingLogDoesNotStand) {
  replicate();
  connect();
  facts_.log_works = false;
  see_alive({kB, kC});
  pass(10 * kGraceUs);
  EXPECT_TRUE(all<ChangeTopology>().empty());
  EXPECT_FALSE(member_->offset(now_us_, "s1"));
  EXPECT_FALSE(member_->take_over(now_us_));
  facts_.log_works = true;
  pass(0);
  EXPECT_EQ(all<ChangeTopology>().size(), 1U);
}

}  // namespace
}  // namespace server::cluster
