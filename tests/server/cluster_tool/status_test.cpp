// SPDX-License-Identifier: MIT
#include "server/cluster_tool/status.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

ClusterStatus sample_status() {
  ClusterStatus status{"bloomery", {sample_topology(), 12}, {id_of('a'), id_of('b')}, {}};
  NodeFacts leader;
  leader.cluster_state = "ok";
  leader.offset = 100;
  leader.keys = 7;
  leader.since_ready_s = 60;
  leader.version = "1.0.0";
  leader.failovers = {2, 1, 0};
  leader.permit_lapses = 3;
  NodeFacts replica = leader;
  replica.offset = 90;
  replica.version = "1.1.0";
  replica.failovers = {};
  replica.permit_lapses = 0;
  status.facts = {leader, replica, core::Error{"ERR 10.0.0.3:7001: Connection refused"}};
  return status;
}

TEST(StatusTest, TableHasARowForEachNode) {
  EXPECT_EQ(status_table(sample_status()),
            "cluster bloomery, revision 12, 2 shards, 3 nodes\n\n"
            "SHARD  SLOTS                 NODE           ROLE     STATE    LAG  KEYS  VERSION\n"
            "s1     0-5460 7000           10.0.0.1:7001  leader   ok            7     1.0.0\n"
            "                             10.0.0.2:7001  replica  in sync  10   7     1.1.0\n"
            "s2     5461-6999 7001-16383  10.0.0.3:7001  leader   down\n"
            "\n10.0.0.3:7001: Connection refused\n"
            "\nA shard has no live leader: its slots are not served.\n");
}

TEST(StatusTest, StateSaysWhatIsMissing) {
  ClusterStatus status = sample_status();
  status.alive = {id_of('a'), id_of('c')};
  status.facts[0]->cluster_state = "fail";
  const std::string table = status_table(status);
  EXPECT_NE(table.find("leader   no permit"), std::string::npos);
  EXPECT_NE(table.find("replica  not registered"), std::string::npos);
  EXPECT_NE(table.find("leader   no answer"), std::string::npos);
  EXPECT_EQ(table.find("no live leader"), std::string::npos);
  EXPECT_TRUE(status.is_whole());
}

TEST(StatusTest, ServerWithAnEmptyDirectoryHasANewId) {
  ClusterStatus status = sample_status();
  status.alive = {id_of('a'), id_of('c'), id_of('d')};
  status.facts[1]->node.id = id_of('d');
  EXPECT_NE(status_table(status).find("replica  registered under a new id"), std::string::npos);
}

TEST(StatusTest, ServersThatKeepANewerTopologyAreCounted) {
  ClusterStatus status = sample_status();
  EXPECT_EQ(status.disagreeing(), 0U);
  status.facts[0]->topology_state = "older";
  EXPECT_NE(status_table(status).find("\n1 servers keep a newer topology than etcd"),
            std::string::npos);
  EXPECT_NE(status_json(status).find(R"("topology_valid":false)"), std::string::npos);
}

TEST(StatusTest, ServersSayThemselvesThatTheyAreNotReady) {
  ClusterStatus status = sample_status();
  // The server has restarted so recently that its clients may not have reconnected yet.
  status.facts[1]->since_ready_s = 2;
  EXPECT_NE(status_table(status).find("replica  starting"), std::string::npos);
  status.facts[1]->link_is_up = false;
  EXPECT_NE(status_table(status).find("replica  link down"), std::string::npos);
  status.facts[1]->log_works = false;
  EXPECT_NE(status_table(status).find("replica  refuses writes"), std::string::npos);
  status.facts[0]->log_works = false;
  EXPECT_NE(status_table(status).find("leader   refuses writes"), std::string::npos);
  status.facts[1]->is_loading = true;
  EXPECT_NE(status_table(status).find("replica  loading"), std::string::npos);
}

TEST(StatusTest, JsonHasTheSame) {
  EXPECT_EQ(
      status_json(sample_status()),
      R"({"cluster":"bloomery","revision":12,"whole":false,"topology_valid":true,)"
      R"("shards":[{"name":"s1","epoch":7,)"
      R"("slots":"0-5460 7000","members_in_sync":2,"bytes_behind":10,"nodes":[{"id":")" +
          id_of('a') +
          R"(","address":"10.0.0.1:7001","role":"leader","alive":true,"in_sync":true,)"
          R"("state":"ok","offset":100,"lag":null,"keys":7,"version":"1.0.0",)"
          R"("failovers":{"handover":2,"lost_leader":1,"forced":0},"permit_lapses":3},{"id":")" +
          id_of('b') +
          R"(","address":"10.0.0.2:7001","role":"replica","alive":true,"in_sync":true,)"
          R"("state":"in sync","offset":90,"lag":10,"keys":7,"version":"1.1.0",)"
          R"("failovers":{"handover":0,"lost_leader":0,"forced":0},"permit_lapses":0}]},)"
          R"({"name":"s2","epoch":1,)"
          R"("slots":"5461-6999 7001-16383","members_in_sync":1,"bytes_behind":null,)"
          R"("nodes":[{"id":")" +
          id_of('c') +
          R"(","address":"10.0.0.3:7001","role":"leader","alive":false,"in_sync":true,)"
          R"("state":"down","offset":null,"lag":null,"keys":null,)"
          R"("error":"10.0.0.3:7001: Connection refused"}]}]})"
          "\n");
}

}  // namespace
}  // namespace server::cluster
