// SPDX-License-Identifier: MIT
#include "server/cluster_host.h"

#include <vector>

#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/command_test.h"
#include "tests/support/replica_fixture.h"
#include "tests/support/test_threads.h"

namespace server {
namespace {

using cluster::HistoryPosition;
using cluster::id_of;
using cluster::ReplicationFacts;
using cluster::Topology;

class ClusterHostTest : public CommandTest {
 protected:
  ReplicationFacts facts() { return host_.facts(topology_.shard("s1")); }

  const Topology topology_ = cluster::sample_topology();
  ClusterHost host_{
      {config_, keyspace_, state_, replication_, leader_, replica_controller_, pause_, threads_}};
};

TEST_F(ClusterHostTest, EmptyServerHasNoCopy) {
  EXPECT_FALSE(facts().has_whole_copy);
  EXPECT_EQ(facts().position, (HistoryPosition{0, 0}));
  run({"SET", "a", "1"});
  EXPECT_TRUE(facts().has_whole_copy);
  state_.availability.begin(Availability::kLoading);
  EXPECT_FALSE(facts().has_whole_copy);
}

TEST_F(ClusterHostTest, LeaderThatLostItsDataHasNoHistory) {
  EXPECT_TRUE(facts().keeps_log);
  const std::vector<const char*> words{"bloomery-server", "--appendonly", "no"};
  ASSERT_TRUE(config_.load(static_cast<int>(words.size()), words.data()));
  EXPECT_FALSE(facts().keeps_log);
  host_.promote(7);
  EXPECT_FALSE(facts().has_whole_copy);
  EXPECT_EQ(facts().position, (HistoryPosition{0, 0}));
}

TEST_F(ClusterHostTest, LeaderHasTheHistoryOfItsEpoch) {
  run({"SET", "a", "1"});
  host_.promote(7);
  EXPECT_TRUE(facts().has_whole_copy);
  EXPECT_EQ(facts().position.epoch, 7U);
  EXPECT_EQ(replication_.cluster_place().epoch, 7U);
  EXPECT_EQ(facts().led_epoch, 7U);
  // In epoch 0 the server leads with the data that it had before a restart. It sends its stream to
  // no replica, because a replica may have more data than the server.
  host_.promote(0);
  EXPECT_EQ(facts().led_epoch, 0U);
  EXPECT_EQ(facts().position.epoch, 7U);
  EXPECT_EQ(replication_.cluster_place().epoch, 0U);
  EXPECT_TRUE(facts().replicas.empty());
}

TEST_F(ClusterHostTest, ReplicaHasTheHistoryOnceItFollows) {
  run({"SET", "a", "1"});
  host_.follow(*topology_.node(id_of('a')), 8);
  EXPECT_TRUE(state_.is_replica);
  EXPECT_EQ(replica_controller_.target()->host, "10.0.0.1");
  EXPECT_EQ(replica_controller_.target()->port, 7001);
  EXPECT_EQ(facts().position.epoch, 0U);
  host_.promote(9);
  EXPECT_FALSE(state_.is_replica);
  EXPECT_EQ(facts().position.epoch, 9U);
}

TEST_F(ClusterHostTest, DemotedLeaderKeepsTheEpochOfItsHistory) {
  run({"SET", "a", "1"});
  host_.promote(7);
  host_.follow(*topology_.node(id_of('a')), 8);
  EXPECT_EQ(facts().led_epoch, 0U);
  EXPECT_EQ(facts().position.epoch, 7U);
}

TEST_F(ClusterHostTest, FailingLogIsReported) {
  EXPECT_TRUE(facts().log_works);
  (void)state_.availability.append_log_failed("No space left on device");
  EXPECT_FALSE(facts().log_works);
}

TEST_F(ClusterHostTest, TornDataAreNoCopy) {
  run({"SET", "a", "1"});
  replication_.begin_replacement();
  EXPECT_FALSE(facts().has_whole_copy);
  host_.promote(7);
  EXPECT_TRUE(facts().has_whole_copy);
}

TEST_F(ClusterHostTest, WritesAreHeldUntilTheyAreReleased) {
  uint64_t held_at = 99;
  host_.hold_writes([&](uint64_t offset) { held_at = offset; });
  EXPECT_EQ(held_at, 0U);
  EXPECT_EQ(run({"SET", "a", "1"}), "");
  host_.release_writes();
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
}

class ClusterReplicaTest : public ReplicaFixture {
 protected:
  bool hears_leader() { return host_.facts(nullptr).hears_leader; }

  ClusterHost host_{
      {config_, keyspace_, state_, replication_, leader_, replica_controller_, pause_, threads_}};
};

TEST_F(ClusterReplicaTest, ALeaderIsHeardWhileItsStreamComes) {
  EXPECT_FALSE(hears_leader());
  begin_stream(kEmptySnapshot);
  EXPECT_TRUE(hears_leader());
  advance_ms(999);
  EXPECT_TRUE(hears_leader());
  advance_ms(1);
  EXPECT_FALSE(hears_leader()) << "it is silent";
  played_.say(command({"PING"}));
  await([this] { return hears_leader(); });
}

TEST_F(ClusterReplicaTest, ALeaderWhoseLinkHasEndedIsNotHeard) {
  begin_stream(kEmptySnapshot);
  ASSERT_TRUE(hears_leader());
  played_.hang_up();
  await([this] { return !hears_leader(); });
}

}  // namespace
}  // namespace server
