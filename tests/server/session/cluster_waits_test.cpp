// SPDX-License-Identifier: MIT
#include "server/session/cluster_waits.h"

#include "core/keyspace/keyspace.h"
#include "server/base/process/server_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using cluster::id_of;

class ClusterWaitsTest : public CommandTest {
 protected:
  ClusterWaitsTest() {
    keyspace_.place_by_slot();
    take(cluster::sample_topology());
    cluster_.set_service(cluster::Service::kUp);
    state_.availability.begin(Availability::kInCluster);
  }
  void take(cluster::Topology topology) {
    cluster_.publish(std::make_shared<cluster::View>(
        id_of('a'), cluster::TopologyVersion{std::move(topology), 9}, std::vector<std::string>{}));
  }
};

TEST_F(ClusterWaitsTest, NotifiesSubscribersOfALostSlot) {
  run({"SSUBSCRIBE", "bar"});
  EXPECT_EQ(end_foreign_channels(pubsub_, cluster_, *client_->session), "");
  cluster::Topology topology = cluster::sample_topology();
  std::swap(topology.shards[0].slots, topology.shards[1].slots);
  take(topology);
  EXPECT_EQ(end_foreign_channels(pubsub_, cluster_, *client_->session),
            "*3\r\n" + bulk("sunsubscribe") + bulk("bar") + integer(0));
  EXPECT_EQ(pubsub_.subscriber_count(SubscriptionKind::kShardChannel, "bar"), 0U);
  EXPECT_EQ(end_foreign_channels(pubsub_, cluster_, *client_->session), "");
}

TEST_F(ClusterWaitsTest, OnlyANewLeaderHoldsClients) {
  EXPECT_FALSE(awaits_cluster(cluster_));
  cluster_.set_service(cluster::Service::kHeld);
  EXPECT_TRUE(awaits_cluster(cluster_));
}

}  // namespace
}  // namespace server
