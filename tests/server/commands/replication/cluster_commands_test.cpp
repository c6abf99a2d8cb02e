// SPDX-License-Identifier: MIT
//
// Tests CLUSTER, and the restrictions on commands in a cluster. One server emulates all nodes.
#include "server/commands/replication/cluster_commands.h"

#include <gmock/gmock.h>

#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "server/base/process/server_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/election/member.h"
#include "server/cluster/router.h"
#include "server/cluster/view.h"
#include "server/commands/connection/transaction_commands.h"
#include "server/commands/keys/database_index.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

const std::string kRefused = encoded_error(kClusterDisabled);
const std::string kCrossed = encoded_error(cluster::kKeysCrossSlots);
const std::string kNodeId(40, 'a');

class ClusterTest : public CommandTest {
 protected:
  ClusterTest() {
    keyspace_.place_by_slot();
    cluster_.publish(cluster::View::emulated(kNodeId));
    cluster_.set_service(cluster::Service::kUp);
    state_.availability.begin(Availability::kInCluster);
  }
};

class NoClusterTest : public CommandTest {};

TEST_F(NoClusterTest, EveryCommandIsRefused) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"CLUSTER", "INFO"},
                                             {"CLUSTER", "SLOTS"},
                                             {"CLUSTER", "SHARDS"},
                                             {"CLUSTER", "NODES"},
                                             {"CLUSTER", "MYID"},
                                             {"CLUSTER", "KEYSLOT", "a"},
                                             {"CLUSTER", "ADDSLOTS", "1"},
                                             {"CLUSTER", "COUNTKEYSINSLOT", "1"},
                                             {"READONLY"},
                                             {"READWRITE"},
                                             {"ASKING"}}) {
    EXPECT_EQ(run(command), kRefused) << command[0];
  }
}

TEST_F(NoClusterTest, KeysOfSeveralSlotsAreFine) {
  EXPECT_EQ(run({"MSET", "a", "1", "b", "2"}), kOk);
}

TEST_F(ClusterTest, OneNodeOwnsEverySlot) {
  EXPECT_EQ(run({"CLUSTER", "SLOTS"}), "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n" + bulk("127.0.0.1") +
                                           ":2\r\n" + bulk(kNodeId) + "*0\r\n");
  EXPECT_EQ(run({"CLUSTER", "NODES"}),
            bulk(kNodeId + " 127.0.0.1:2@10002 myself,master - 0 0 0 connected 0-16383\n"));
  EXPECT_EQ(run({"CLUSTER", "MYID"}), bulk(kNodeId));
  EXPECT_EQ(run({"CLUSTER", "MYSHARDID"}), bulk(kNodeId));
  EXPECT_NE(run({"CLUSTER", "INFO"}).find("cluster_slots_ok:16384\r\n"), std::string::npos);
  EXPECT_EQ(run({"CLUSTER", "LINKS"}), "*0\r\n");
}

TEST_F(ClusterTest, ClientsAreSentWhereWasAnnounced) {
  run({"CONFIG", "SET", "cluster-announce-ip", "bloom.example", "cluster-announce-port", "7100"});
  EXPECT_NE(run({"CLUSTER", "NODES"}).find(" bloom.example:7100@17100 "), std::string::npos);
}

TEST_F(ClusterTest, AddressOfIPv6LosesItsBrackets) {
  client_->session->client->local_address = "[::1]:7000";
  EXPECT_NE(run({"CLUSTER", "SLOTS"}).find("$3\r\n::1\r\n:7000\r\n"), std::string::npos);
}

TEST_F(ClusterTest, KeysAreFoundByTheirSlot) {
  run({"MSET", "{foo}1", "a", "{foo}2", "b", "{foo}3", "c"});
  run({"SET", "bar", "d"});
  EXPECT_EQ(run({"CLUSTER", "KEYSLOT", "foo"}), integer(12182));
  EXPECT_EQ(run({"CLUSTER", "COUNTKEYSINSLOT", "12182"}), integer(3));
  EXPECT_EQ(run({"CLUSTER", "COUNTKEYSINSLOT", "0"}), integer(0));
  EXPECT_EQ(run({"CLUSTER", "GETKEYSINSLOT", "12182", "2"}).substr(0, 4), "*2\r\n");
  EXPECT_EQ(run({"CLUSTER", "GETKEYSINSLOT", "12182", "9"}).substr(0, 4), "*3\r\n");
  EXPECT_EQ(run({"CLUSTER", "GETKEYSINSLOT", "12182", "0"}), "*0\r\n");
  run({"PEXPIRE", "{foo}1", "5"});
  advance_ms(10);
  // As in Redis, COUNTKEYSINSLOT counts an expired key until it is deleted, here by DEL.
  EXPECT_EQ(run({"CLUSTER", "COUNTKEYSINSLOT", "12182"}), integer(3));
  EXPECT_EQ(run({"CLUSTER", "GETKEYSINSLOT", "12182", "9"}).substr(0, 4), "*2\r\n");
  EXPECT_EQ(run({"DEL", "{foo}1"}), integer(0));
  EXPECT_EQ(run({"CLUSTER", "COUNTKEYSINSLOT", "12182"}), integer(2));
}

TEST_F(ClusterTest, SlotsBeyondTheLastAreRefused) {
  EXPECT_THAT(run({"CLUSTER", "COUNTKEYSINSLOT", "16384"}), is_error("ERR", "slot"));
  EXPECT_THAT(run({"CLUSTER", "COUNTKEYSINSLOT", "-1"}), is_error("ERR", "slot"));
  EXPECT_THAT(run({"CLUSTER", "GETKEYSINSLOT", "1", "-1"}), is_error("ERR", "number of keys"));
}

TEST_F(ClusterTest, KeysAreListedInsideATransaction) {
  run({"SET", "foo", "1"});
  run({"MULTI"});
  run({"CLUSTER", "GETKEYSINSLOT", "12182", "10"});
  EXPECT_EQ(run({"EXEC"}), "*1\r\n*1\r\n" + bulk("foo"));
}

TEST_F(ClusterTest, KeysOfOneCommandShareASlot) {
  EXPECT_EQ(run({"MSET", "a", "1", "b", "2"}), kCrossed);
  EXPECT_EQ(run({"MSET", "{t}a", "1", "{t}b", "2"}), kOk);
  EXPECT_EQ(run({"BITOP", "AND", "x", "{t}a", "{t}b"}), kCrossed);
  EXPECT_EQ(run({"WATCH", "a", "b"}), kCrossed);
  EXPECT_EQ(run({"SSUBSCRIBE", "a", "b"}), kCrossed);
  EXPECT_EQ(run({"BF.KEXISTS", "2", "a", "b", "item"}), kCrossed);
  // An error about the number of arguments or keys takes precedence over CROSSSLOT.
  EXPECT_EQ(run({"GET"}), error(protocol::wrong_arity("get")));
  EXPECT_EQ(run({"MGET", "a"}).front(), '*');
}

TEST_F(ClusterTest, QueuedKeysOfSeveralSlotsAreRefusedByExec) {
  run({"MULTI"});
  EXPECT_EQ(run({"SET", "a", "1"}), "+QUEUED\r\n");
  EXPECT_EQ(run({"SET", "b", "1"}), "+QUEUED\r\n");
  EXPECT_EQ(run({"EXEC"}), kCrossed);
  EXPECT_EQ(run({"EXEC"}), error(kExecWithoutMulti));
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

TEST_F(ClusterTest, CommandOfSeveralSlotsSpoilsItsTransaction) {
  run({"MULTI"});
  EXPECT_EQ(run({"MGET", "a", "b"}), kCrossed);
  // The rejected MGET does not end the transaction: the next commands are queued, and EXEC discards
  // them.
  EXPECT_EQ(run({"SET", "a", "1"}), "+QUEUED\r\n");
  EXPECT_EQ(run({"SET", "b", "1"}), "+QUEUED\r\n");
  EXPECT_EQ(run({"EXEC"}), error(kTransactionDiscarded));
}

TEST_F(ClusterTest, ThereIsOneDatabase) {
  EXPECT_EQ(run({"SELECT", "0"}), kOk);
  EXPECT_EQ(run({"SELECT", "1"}), error(not_in_cluster("SELECT")));
  EXPECT_EQ(run({"SELECT", "99"}), error(not_in_cluster("SELECT")));
  EXPECT_EQ(run({"SELECT", "x"}), error(kNotAnInteger));
  EXPECT_EQ(run({"SWAPDB", "0", "0"}), error(not_in_cluster("SWAPDB")));
  EXPECT_EQ(run({"MOVE", "a", "x"}), error(not_in_cluster("MOVE")));
  EXPECT_THAT(run({"COPY", "a", "b{a}", "DB", "1"}), is_error("ERR", "Copying"));
}

// Each thread has its own copy of the view, so a command must not read that of another thread. A
// client of the admin port runs on the admin thread, although its thread index is 0.
TEST_F(ClusterTest, CommandsReadTheViewOfTheirThread) {
  client_->session->client->view_index = cluster_.admin_thread();
  EXPECT_EQ(run({"PUBLISH", "c", "m"}), integer(0));
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
  EXPECT_EQ(run({"CLUSTER", "MYID"}), bulk(kNodeId));
  EXPECT_TRUE(cluster_.serves(cluster_.admin_thread(), 0));
  EXPECT_FALSE(cluster_.serves(0, 0));
}

TEST_F(ClusterTest, TheTopologyStays) {
  EXPECT_THAT(run({"REPLICAOF", "NO", "ONE"}), is_error("ERR", "REPLICAOF"));
  EXPECT_THAT(run({"SLAVEOF", "a", "1"}), is_error("ERR", "REPLICAOF"));
  EXPECT_EQ(run({"FAILOVER"}).substr(0, 41), "-ERR FAILOVER not allowed in cluster mode");
  EXPECT_EQ(run({"CLUSTER", "FAILOVER"}), error(cluster::kFailoverNeedsReplica));
  EXPECT_EQ(run({"CLUSTER", "FAILOVER", "NOW"}), error(kSyntaxError));
  EXPECT_EQ(run({"CLUSTER", "failover", "FORCE", "x"}),
            error(protocol::wrong_subcommand("failover", "CLUSTER")));
  EXPECT_EQ(run({"CLUSTER", "ADDSLOTS", "1"}).substr(0, 27), "-ERR the cluster is emulate");
  EXPECT_EQ(run({"CLUSTER", "BUMPEPOCH"}), "+STILL 0\r\n");
  EXPECT_EQ(run({"CLUSTER", "SAVECONFIG"}), kOk);
  EXPECT_EQ(run({"CLUSTER", "REPLICAS", kNodeId}), "*0\r\n");
  EXPECT_THAT(run({"CLUSTER", "REPLICAS", "abc"}), is_error("ERR", "abc"));
  EXPECT_EQ(run({"CLUSTER", "COUNT-FAILURE-REPORTS", kNodeId}), integer(0));
}

TEST_F(ClusterTest, ClientsSeeACluster) {
  EXPECT_EQ(run({"INFO", "cluster"}), bulk("# Cluster\r\ncluster_enabled:1\r\n"));
  EXPECT_NE(run({"INFO", "server"}).find("redis_mode:cluster\r\n"), std::string::npos);
  EXPECT_NE(run({"HELLO"}).find("$4\r\nmode\r\n$7\r\ncluster\r\n"), std::string::npos);
  EXPECT_EQ(run({"READONLY"}) + run({"READWRITE"}) + run({"ASKING"}), kOk + kOk + kOk);
}

}  // namespace
}  // namespace server
