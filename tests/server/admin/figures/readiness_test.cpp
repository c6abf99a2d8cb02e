// SPDX-License-Identifier: MIT
#include "server/admin/figures/readiness.h"

#include <gmock/gmock.h>

#include "server/base/process/server_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/permit_clock.h"
#include "server/cluster/view.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/command_test.h"
#include "tests/support/replica_fixture.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;

class ReadinessTest : public CommandTest {};

TEST_F(ReadinessTest, ALeaderIsReadyOnceItHasLoaded) {
  EXPECT_EQ(unready_cause(services_), "");
  state_.availability.begin(Availability::kLoading);
  EXPECT_THAT(unready_cause(services_), HasSubstr("loading"));
  state_.availability.end(Availability::kLoading);
  EXPECT_EQ(unready_cause(services_), "");
}

TEST_F(ReadinessTest, AReplicaWithoutItsLeadersDataIsNotReady) {
  EXPECT_EQ(run({"REPLICAOF", "127.0.0.1", "1"}), kOk);
  EXPECT_THAT(unready_cause(services_), HasSubstr("has not got"));
  EXPECT_EQ(run({"REPLICAOF", "NO", "ONE"}), kOk);
  EXPECT_EQ(unready_cause(services_), "");
}

class ReplicaReadinessTest : public ReplicaFixture {
 protected:
  void SetUp() override {
    run({"CONFIG", "SET", "http-ready-max-lag", "2"});
    begin_stream(kEmptySnapshot);
  }
};

TEST_F(ReplicaReadinessTest, AReplicaIsReadyWhileItHearsItsLeader) {
  EXPECT_EQ(unready_cause(services_), "");
  advance_ms(2000);
  EXPECT_EQ(unready_cause(services_), "");
}

TEST_F(ReplicaReadinessTest, AReplicaThatHearsNothingIsNotReady) {
  advance_ms(3000);
  EXPECT_THAT(unready_cause(services_), HasSubstr("http-ready-max-lag is 2"));
}

TEST_F(ReplicaReadinessTest, AReplicaThatHasCaughtUpIsReadyAgain) {
  advance_ms(3000);
  EXPECT_NE(unready_cause(services_), "");
  played_.say(command({"PING"}));
  await([this] { return unready_cause(services_).empty(); });
}

TEST_F(ReplicaReadinessTest, AReplicaThatHasLostItsLeaderIsReadyForAWhile) {
  played_.hang_up();
  await([this] { return !replication_.link_is_up(); });
  EXPECT_EQ(unready_cause(services_), "");
  advance_ms(3000);
  EXPECT_THAT(unready_cause(services_), HasSubstr("heard its leader"));
}

TEST_F(ReplicaReadinessTest, WithoutALimitALagDoesNotCount) {
  run({"CONFIG", "SET", "http-ready-max-lag", "0"});
  advance_ms(3'600'000);
  EXPECT_EQ(unready_cause(services_), "");
}

TEST_F(ReplicaReadinessTest, WhileASnapshotComesItIsNotReady) {
  PlayedLeader next;
  ask_to_follow(next);
  next.await_psync();
  next.say("+FULLRESYNC " + next.kId + " 0\r\n$1000\r\nREDIS");
  await([this] { return replica_controller_.figures().state == ReplicaLinkState::kSync; });
  EXPECT_THAT(unready_cause(services_), HasSubstr("has not got"));
}

class NodeReadinessTest : public CommandTest {
 protected:
  // Makes this server the node `own` of the sample topology: 'a' is a leader, 'b' its replica, and
  // 'd' is in no shard.
  void be(char own, cluster::TopologyFault fault = cluster::TopologyFault::kNone) {
    cluster_.publish(std::make_shared<cluster::View>(
        cluster::id_of(own), cluster::TopologyVersion{cluster::sample_topology(), 9},
        std::vector<std::string>{}, fault));
  }
  void permit_for_ms(int64_t length_ms) {
    const int64_t now_us = cluster::permit_clock_us();
    cluster_.set_permit(now_us - 1, now_us + length_ms * 1000);
  }
};

TEST_F(NodeReadinessTest, ALeaderIsReadyWithAPermit) {
  cluster_.publish(std::make_shared<cluster::View>(cluster::id_of('a')));
  EXPECT_THAT(unready_cause(services_), HasSubstr("does not know"));
  be('a');
  EXPECT_THAT(unready_cause(services_), HasSubstr("no permit"));
  cluster_.set_service(cluster::Service::kHeld);
  permit_for_ms(60'000);
  EXPECT_THAT(unready_cause(services_), HasSubstr("former leader's permit"));
  cluster_.set_service(cluster::Service::kUp);
  EXPECT_EQ(unready_cause(services_), "");
  permit_for_ms(-1);
  EXPECT_THAT(unready_cause(services_), HasSubstr("no permit"));
}

TEST_F(NodeReadinessTest, LostTopologyIsNotReady) {
  be('b', cluster::TopologyFault::kAbsent);
  EXPECT_THAT(unready_cause(services_), HasSubstr("no topology"));
  be('b', cluster::TopologyFault::kOlder);
  EXPECT_THAT(unready_cause(services_), HasSubstr("older topology"));
}

TEST_F(NodeReadinessTest, OthersNeedNoPermit) {
  be('d');
  EXPECT_THAT(unready_cause(services_), HasSubstr("does not name"));
  be('b');
  EXPECT_EQ(unready_cause(services_), "");
  cluster_.publish(cluster::View::emulated(cluster::id_of('a')));
  EXPECT_EQ(unready_cause(services_), "");
}

}  // namespace
}  // namespace server::admin
