// SPDX-License-Identifier: MIT
//
// Tests how CLUSTER SLOTS, SHARDS and NODES describe a cluster of several servers.
#include "server/commands/replication/cluster_description.h"

#include <gmock/gmock.h>

#include "core/keyspace/keyspace.h"
#include "server/base/process/server_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/election/member.h"
#include "server/cluster/view.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using cluster::id_of;

class ClusterDescriptionTest : public CommandTest {
 protected:
  ClusterDescriptionTest() {
    keyspace_.place_by_slot();
    be('a', {'a', 'b', 'c'});
    cluster_.set_service(cluster::Service::kUp);
    state_.availability.begin(Availability::kInCluster);
  }
  void be(char own, const std::vector<char>& alive) {
    std::vector<std::string> ids;
    for (const char digit : alive) ids.push_back(id_of(digit));
    cluster_.publish(std::make_shared<cluster::View>(
        id_of(own), cluster::TopologyVersion{cluster::sample_topology(), 9}, ids));
  }
  static std::string node_of_slots(char digit, std::string_view ip, int port,
                                   std::string_view metadata) {
    return "*4\r\n" + bulk(ip) + integer(port) + bulk(id_of(digit)) + std::string(metadata);
  }
};

TEST_F(ClusterDescriptionTest, SlotsNameLeadersAndTheirReplicas) {
  const std::string name = "*2\r\n" + bulk("hostname") + bulk("b.example");
  const std::string a = node_of_slots('a', "10.0.0.1", 7001, "*0\r\n");
  const std::string b = node_of_slots('b', "10.0.0.2", 7001, name);
  const std::string c = node_of_slots('c', "10.0.0.3", 7001, "*0\r\n");
  EXPECT_EQ(run({"CLUSTER", "SLOTS"}),
            "*4\r\n*4\r\n:0\r\n:5460\r\n" + a + b + "*3\r\n:5461\r\n:6999\r\n" + c +
                "*4\r\n:7000\r\n:7000\r\n" + a + b + "*3\r\n:7001\r\n:16383\r\n" + c);
  // CLUSTER SLOTS lists a dead leader, but omits a dead replica.
  be('c', {'c'});
  EXPECT_EQ(run({"CLUSTER", "SLOTS"}).substr(0, 23), "*4\r\n*3\r\n:0\r\n:5460\r\n*4\r\n");
}

TEST_F(ClusterDescriptionTest, NodesAreLines) {
  be('b', {'b', 'c'});
  const std::string now = std::to_string(clock_.now_ms);
  EXPECT_EQ(run({"CLUSTER", "NODES"}),
            bulk(id_of('a') + " 10.0.0.1:7001@17001 master,fail - 0 " + now +
                 " 7 disconnected 0-5460 7000\n" + id_of('b') +
                 " 10.0.0.2:7001@17001,b.example myself,slave " + id_of('a') +
                 " 0 0 7 connected\n" + id_of('c') + " 10.0.0.3:7001@17001 master - 0 " + now +
                 " 1 connected 5461-6999 7001-16383\n"));
}

// redis-cli needs the line of the server to which it sends CLUSTER NODES. So the reply has this
// line even if the topology lacks the server.
TEST_F(ClusterDescriptionTest, ServerOutsideOfTheTopologyTellsOfItself) {
  be('e', {'a'});
  const std::string lines = run({"CLUSTER", "NODES"});
  EXPECT_NE(lines.find("\n" + id_of('e') + " 127.0.0.1:2@10002 myself,master - 0 0 0 connected\n"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find(id_of('a') + " 10.0.0.1:7001@17001 master "), std::string::npos);
}

TEST_F(ClusterDescriptionTest, ReplicasAreLinesToo) {
  const std::string now = std::to_string(clock_.now_ms);
  EXPECT_EQ(run({"CLUSTER", "REPLICAS", id_of('a')}),
            array({bulk(id_of('b') + " 10.0.0.2:7001@17001,b.example slave " + id_of('a') + " 0 " +
                        now + " 7 connected")}));
  EXPECT_EQ(run({"CLUSTER", "SLAVES", id_of('c')}), "*0\r\n");
  EXPECT_THAT(run({"CLUSTER", "REPLICAS", id_of('b')}), is_error("ERR", "not a master"));
  EXPECT_THAT(run({"CLUSTER", "REPLICAS", "x"}), is_error("ERR", "node x"));
}

TEST_F(ClusterDescriptionTest, ShardsTellRoleAndHealth) {
  be('c', {'b', 'c'});
  const std::string shards = run({"CLUSTER", "SHARDS"});
  EXPECT_TRUE(shards.starts_with(
      "*2\r\n*4\r\n" + bulk("slots") + "*4\r\n:0\r\n:5460\r\n:7000\r\n:7000\r\n" + bulk("nodes") +
      "*2\r\n*14\r\n" + bulk("id") + bulk(id_of('a')) + bulk("port") + integer(7001) + bulk("ip") +
      bulk("10.0.0.1") + bulk("endpoint") + bulk("10.0.0.1") + bulk("role") + bulk("master") +
      bulk("replication-offset") + integer(0) + bulk("health") + bulk("fail") + "*18\r\n"))
      << shards;
  EXPECT_NE(shards.find(bulk("tls-port") + integer(7101)), std::string::npos);
  run({"HELLO", "3"});
  EXPECT_EQ(run({"CLUSTER", "SHARDS"}).substr(0, 8), "*2\r\n%2\r\n");
}

TEST_F(ClusterDescriptionTest, InfoTellsOfEpochsAndOfEtcd) {
  be('c', {'c'});
  cluster_.set_etcd_up(true);
  EXPECT_EQ(run({"CLUSTER", "INFO"}),
            bulk("cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:10922\r\n"
                 "cluster_slots_pfail:0\r\ncluster_slots_fail:5462\r\ncluster_known_nodes:3\r\n"
                 "cluster_size:2\r\ncluster_current_epoch:9\r\ncluster_my_epoch:1\r\n"
                 "cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\n"
                 "total_cluster_links_buffer_limit_exceeded:0\r\n"
                 "cluster_permit_ms:0\r\ncluster_etcd:up\r\ncluster_topology:ok\r\n"
                 "cluster_members:1\r\ncluster_members_in_sync:1\r\ncluster_bytes_behind:0\r\n"
                 "cluster_permit_lapses:0\r\ncluster_failovers_handover:0\r\n"
                 "cluster_failovers_lost_leader:0\r\ncluster_failovers_forced:0\r\n"));
  cluster_.set_service(cluster::Service::kDown);
  EXPECT_NE(run({"CLUSTER", "INFO"}).find("cluster_state:fail\r\n"), std::string::npos);
}

TEST_F(ClusterDescriptionTest, IdsOfAShardAreTheSameOnItsNodes) {
  const std::string of_leader = run({"CLUSTER", "MYSHARDID"});
  be('b', {});
  EXPECT_EQ(run({"CLUSTER", "MYSHARDID"}), of_leader);
  be('c', {});
  EXPECT_NE(run({"CLUSTER", "MYSHARDID"}), of_leader);
  EXPECT_EQ(of_leader.size(), std::string("$40\r\n\r\n").size() + 40);
}

TEST_F(ClusterDescriptionTest, TheTopologyIsChangedElsewhere) {
  EXPECT_THAT(run({"CLUSTER", "ADDSLOTS", "1"}), is_error("ERR", "bloomery-cluster"));
  EXPECT_EQ(run({"CLUSTER", "FAILOVER"}), error(cluster::kFailoverNeedsReplica));
  EXPECT_EQ(run({"CLUSTER", "BUMPEPOCH"}), "+STILL 7\r\n");
}

// The reply comes when the shard has a new leader, and EXEC cannot wait.
TEST_F(ClusterDescriptionTest, FailoverIsRefusedInsideExec) {
  be('b', {'a', 'b'});
  run({"MULTI"});
  EXPECT_EQ(run({"CLUSTER", "FAILOVER"}), "+QUEUED\r\n");
  EXPECT_THAT(run({"EXEC"}).substr(4), is_error("ERR", "EXEC"));
}

}  // namespace
}  // namespace server
