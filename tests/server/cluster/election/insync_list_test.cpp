// SPDX-License-Identifier: MIT
#include "server/cluster/election/insync_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

constexpr int64_t kJoinUs = 2'000'000;
constexpr int64_t kLeaveUs = 10'000'000;

const std::string kListLeader = id_of('a');
const std::string kListReplica = id_of('b');

Shard shard_with(std::vector<std::string> insync) {
  Shard shard = sample_topology().shards[0];
  shard.insync = std::move(insync);
  return shard;
}

ReplicationFacts facts_of(uint64_t offset, uint64_t acked, bool is_online = true) {
  return {true, {7, offset}, {{kListReplica, acked, is_online}}};
}

TEST(InsyncList, AReplicaJoinsWhenItHasWhatThereWasALookBefore) {
  InsyncList list(kJoinUs, kLeaveUs);
  const Shard shard = shard_with({kListLeader});
  list.begin(shard, 0);
  list.look(shard, facts_of(100, 0), 0);
  EXPECT_EQ(list.wanted(shard, 0), std::vector{kListLeader});
  list.look(shard, facts_of(200, 99), 1000);
  EXPECT_EQ(list.wanted(shard, 1000), std::vector{kListLeader});
  list.look(shard, facts_of(300, 100), 2000);
  EXPECT_EQ(list.wanted(shard, 2000), (std::vector{kListLeader, kListReplica}));
}

TEST(InsyncList, AReplicaDoesNotJoinFarBehind) {
  InsyncList list(kJoinUs, kLeaveUs);
  const Shard shard = shard_with({kListLeader});
  list.begin(shard, 0);
  list.look(shard, facts_of(100, 0), 1);
  list.look(shard, facts_of(900, 100), 2 + kJoinUs);
  EXPECT_EQ(list.wanted(shard, 2 + kJoinUs), std::vector{kListLeader});
}

TEST(InsyncList, AMemberLeavesOnlyWhenItHasLaggedForLong) {
  InsyncList list(kJoinUs, kLeaveUs);
  const Shard shard = shard_with({kListLeader, kListReplica});
  list.begin(shard, 0);
  list.look(shard, facts_of(100, 0, false), kLeaveUs);
  EXPECT_EQ(list.wanted(shard, kLeaveUs), (std::vector{kListLeader, kListReplica}));
  EXPECT_EQ(list.wanted(shard, kLeaveUs + 1), std::vector{kListLeader});
}

TEST(InsyncList, AMemberLeavesWhenItsLinkEnds) {
  InsyncList list(kJoinUs, kLeaveUs);
  const Shard shard = shard_with({kListLeader, kListReplica});
  list.begin(shard, 0);
  list.look(shard, facts_of(100, 100), 1);
  EXPECT_EQ(list.wanted(shard, 1), (std::vector{kListLeader, kListReplica}));
  list.look(shard, facts_of(100, 100, false), 2);
  EXPECT_EQ(list.wanted(shard, 2), std::vector{kListLeader});
  // The replica has caught up again before etcd has answered the request to remove the replica from
  // the list.
  list.look(shard, facts_of(100, 100), 3);
  EXPECT_EQ(list.wanted(shard, 3), (std::vector{kListLeader, kListReplica}));
}

TEST(InsyncList, MemberLeavesWhenItsLogFails) {
  InsyncList list(kJoinUs, kLeaveUs);
  const Shard shard = shard_with({kListLeader, kListReplica});
  ReplicationFacts failing = facts_of(100, 100);
  failing.replicas[0].log_works = false;
  list.begin(shard, 0);
  list.look(shard, failing, 1);
  EXPECT_EQ(list.wanted(shard, 1), std::vector{kListLeader}) << "a new leader hears of it, too";
  list.begin(shard, 1);
  list.look(shard, facts_of(100, 100), 1);
  EXPECT_EQ(list.wanted(shard, 1).size(), 2U);
  list.look(shard, failing, 2);
  list.look(shard, failing, 3);
  EXPECT_EQ(list.wanted(shard, 3), std::vector{kListLeader});
  list.look(shard, facts_of(100, 100), 4);
  EXPECT_EQ(list.wanted(shard, 4).size(), 2U);
}

TEST(InsyncList, OldLinkWithFailingLogDoesNotCount) {
  const Shard shard = shard_with({kListLeader, kListReplica});
  for (const bool is_old_first : {true, false}) {
    InsyncList list(kJoinUs, kLeaveUs);
    list.begin(shard, 0);
    ReplicationFacts facts = facts_of(100, 100);
    facts.replicas.push_back({kListReplica, 90, true, true});
    facts.replicas[is_old_first ? 0 : 1].log_works = false;
    list.look(shard, facts, 1);
    EXPECT_EQ(list.wanted(shard, 1).size(), 2U);
  }
}

TEST(InsyncList, AReplicaThatKeepsUpStays) {
  InsyncList list(kJoinUs, kLeaveUs);
  const Shard shard = shard_with({kListLeader, kListReplica});
  list.begin(shard, 0);
  for (int64_t now_us = 0; now_us < 5 * kLeaveUs; now_us += kJoinUs) {
    list.look(shard, facts_of(static_cast<uint64_t>(now_us), static_cast<uint64_t>(now_us)),
              now_us);
    EXPECT_EQ(list.wanted(shard, now_us).size(), 2U);
  }
}

TEST(InsyncList, ListHoldsOnlyMembers) {
  InsyncList list(kJoinUs, kLeaveUs);
  Shard shard = shard_with({kListLeader});
  shard.members = {kListLeader};
  list.begin(shard, 0);
  list.look(shard, facts_of(0, 0), 1);
  list.look(shard, facts_of(0, 0), 2);
  EXPECT_EQ(list.wanted(shard, 2), std::vector{kListLeader});
}

TEST(InsyncList, TheSecondLinkOfAReplicaDoesNotCount) {
  InsyncList list(kJoinUs, kLeaveUs);
  const Shard shard = shard_with({kListLeader});
  list.begin(shard, 0);
  ReplicationFacts facts = facts_of(100, 0, false);
  facts.replicas.push_back({kListReplica, 100, true});
  list.look(shard, facts, 1);
  list.look(shard, facts, 2);
  EXPECT_EQ(list.wanted(shard, 2).size(), 2U) << "the link that is online counts";
}

}  // namespace
}  // namespace server::cluster
