// SPDX-License-Identifier: MIT
#include "server/dispatch/own_keys.h"

#include "core/keyspace/keyspace.h"
#include "server/base/process/server_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class OwnKeysTest : public CommandTest {
 protected:
  OwnKeysTest() {
    keyspace_.place_by_slot();
    publish(cluster::sample_topology());
    cluster_.set_service(cluster::Service::kUp);
  }
  void publish(cluster::Topology topology) {
    cluster_.publish(std::make_shared<cluster::View>(
        cluster::id_of('a'), cluster::TopologyVersion{std::move(topology), 1},
        std::vector<std::string>{}));
  }
  // Creates keys outside cluster mode. Some keys are in slots that the server does not own.
  void fill() {
    state_.availability.end(Availability::kInCluster);
    for (const std::string name : {"foo", "{foo}2", "bar"}) run({"SET", name, "1"});
    state_.availability.begin(Availability::kInCluster);
  }
};

TEST_F(OwnKeysTest, KeysOfForeignSlotsAreNotShown) {
  fill();
  EXPECT_EQ(run({"KEYS", "*"}), array({bulk("bar")}));
  EXPECT_EQ(run({"SCAN", "0", "COUNT", "100"}), "*2\r\n" + bulk("0") + array({bulk("bar")}));
  EXPECT_EQ(run({"DBSIZE"}), integer(1));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run({"RANDOMKEY"}), bulk("bar"));
  EXPECT_EQ(run({"DEL", "bar"}), integer(1));
  EXPECT_EQ(run({"RANDOMKEY"}), kNull);
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
}

TEST_F(OwnKeysTest, FiltersOfForeignSlotsAreNotShown) {
  state_.availability.end(Availability::kInCluster);
  for (const std::string name : {"foo", "{foo}2", "bar"}) run({"BF.ADD", name, "item"});
  state_.availability.begin(Availability::kInCluster);
  const std::string reply = run({"BF.SCAN", "0", "COUNT", "100"});
  EXPECT_TRUE(reply.starts_with("*2\r\n" + bulk("0") + "*1\r\n*28\r\n" + bulk("key") + bulk("bar")))
      << reply;
  EXPECT_EQ(run({"DEL", "bar"}), integer(1));
  EXPECT_EQ(run({"BF.SCAN", "0", "COUNT", "100"}), "*2\r\n" + bulk("0") + "*0\r\n");
}

TEST_F(OwnKeysTest, OneShardShowsAll) {
  fill();
  cluster::Topology topology = cluster::sample_topology();
  topology.shards[0].slots = {{0, 16383}};
  topology.shards.pop_back();
  topology.nodes.pop_back();
  publish(topology);
  EXPECT_EQ(run({"DBSIZE"}), integer(3));
}

TEST_F(OwnKeysTest, WithoutATopologyNothingIsShown) {
  fill();
  cluster_.publish(std::make_shared<cluster::View>(cluster::id_of('a')));
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
  EXPECT_EQ(run({"KEYS", "*"}), "*0\r\n");
}

}  // namespace
}  // namespace server
