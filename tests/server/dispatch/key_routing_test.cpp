// SPDX-License-Identifier: MIT
//
// Routing of client commands in a cluster of several servers.
#include <gmock/gmock.h>

#include <cstdint>
#include <limits>

#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "server/base/process/availability.h"
#include "server/base/process/server_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/router.h"
#include "server/cluster/view.h"
#include "server/commands/connection/transaction_commands.h"
#include "server/commands/keys/database_index.h"
#include "server/session/session.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using cluster::id_of;
using cluster::Service;

// The key foo is in slot 12182 of shard s2, whose leader is node c. The key bar is in slot 5061 of
// shard s1, whose leader is first node a, later node b.
const std::string kMovedFoo = encoded_error(cluster::moved_error(12182, "10.0.0.3", 7001));
const std::string kMovedBar = encoded_error(cluster::moved_error(5061, "10.0.0.1", 7001));
const std::string kCrossed = encoded_error(cluster::kKeysCrossSlots);
const std::string kDown = encoded_error(cluster::kClusterIsDown);
const std::string kAborted = encoded_error(kTransactionDiscarded);
const std::string kQueued = "+QUEUED\r\n";

class KeyRoutingTest : public CommandTest {
 protected:
  KeyRoutingTest() {
    keyspace_.place_by_slot();
    become('a');
    cluster_.set_service(Service::kUp);
    state_.availability.begin(Availability::kInCluster);
  }
  void become(char own) { take(own, cluster::sample_topology()); }
  void take(char own, cluster::Topology topology) {
    cluster_.publish(std::make_shared<cluster::View>(
        id_of(own), cluster::TopologyVersion{std::move(topology), 9},
        std::vector{id_of('a'), id_of('b'), id_of('c')}));
  }
};

TEST_F(KeyRoutingTest, KeysOfOthersAreMoved) {
  EXPECT_EQ(run({"SET", "bar", "1"}), kOk);
  EXPECT_EQ(run({"SET", "foo", "1"}), kMovedFoo);
  EXPECT_EQ(run({"GET", "foo"}), kMovedFoo);
  EXPECT_EQ(run({"BF.ADD", "foo", "item"}), kMovedFoo);
  EXPECT_EQ(run({"MGET", "foo", "bar"}), kCrossed);
  EXPECT_EQ(run({"WATCH", "foo"}), kMovedFoo);
  EXPECT_EQ(run({"GET"}), error(protocol::wrong_arity("get")));
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
}

// Before the server runs the commands of a pipeline, it hashes the keys of all of them. So it knows
// the slots of these keys beforehand.
TEST_F(KeyRoutingTest, PipelinesAreRoutedAsSingleCommandsAre) {
  const std::vector<std::vector<std::string_view>> commands = {{"SET", "bar", "1"},
                                                               {"GET", "foo"},
                                                               {"GET", "bar"},
                                                               {"BF.ADD", "{bar}f", "x"},
                                                               {"MGET", "bar", "foo"},
                                                               {"GET", "{foo}"},
                                                               {"PING"},
                                                               {"GET"},
                                                               {"MULTI"},
                                                               {"GET", "bar"},
                                                               {"EXEC"},
                                                               {"MULTI"},
                                                               {"SET", "foo", "1"},
                                                               {"EXEC"}};
  const auto expect_the_same = [&](const char* of_whom) {
    std::vector<std::string> expected;
    for (const auto& command : commands) expected.push_back(run({command.begin(), command.end()}));
    run({"DEL", "bar", "{bar}f"});
    EXPECT_EQ(run_pipeline(commands), expected) << of_whom;
    run({"DEL", "bar", "{bar}f"});
  };
  expect_the_same("leader");
  EXPECT_EQ(run_pipeline({{"SET", "bar", "1"}, {"GET", "foo"}, {"GET", "bar"}}),
            (std::vector{kOk, kMovedFoo, bulk("1")}));
  cluster_.set_service(Service::kDown);
  expect_the_same("leader without a permit");
  cluster_.set_service(Service::kUp);
  state_.availability.begin(Availability::kLoading);
  expect_the_same("leader that loads");
  state_.availability.end(Availability::kLoading);
  become('b');
  expect_the_same("replica");
  run({"READONLY"});
  expect_the_same("replica to a client that reads from replicas");
  cluster_.publish(std::make_shared<cluster::View>(id_of('a')));
  expect_the_same("server without a topology");
}

TEST_F(KeyRoutingTest, WithoutATopologyNoSlotIsServed) {
  cluster_.publish(std::make_shared<cluster::View>(id_of('a')));
  EXPECT_EQ(run({"GET", "bar"}), error(cluster::kSlotNotServed));
  EXPECT_EQ(run({"CLUSTER", "SLOTS"}), "*0\r\n");
  EXPECT_EQ(run({"CLUSTER", "SHARDS"}), "*0\r\n");
  EXPECT_EQ(run({"CLUSTER", "NODES"}),
            bulk(id_of('a') + " 127.0.0.1:2@10002 myself,master - 0 0 0 connected\n"));
  EXPECT_EQ(run({"CLUSTER", "MYID"}), bulk(id_of('a')));
  EXPECT_NE(run({"CLUSTER", "INFO"}).find("cluster_state:fail\r\ncluster_slots_assigned:0\r\n"),
            std::string::npos);
}

TEST_F(KeyRoutingTest, ReplicaServesReadsOfReadonlyClients) {
  run({"SET", "bar", "1"});
  become('b');
  cluster_.set_service(Service::kDown);
  EXPECT_EQ(run({"GET", "bar"}), kMovedBar);
  EXPECT_EQ(run({"READONLY"}), kOk);
  EXPECT_EQ(run({"GET", "bar"}), bulk("1"));
  EXPECT_EQ(run({"SET", "bar", "2"}), kMovedBar);
  EXPECT_EQ(run({"GET", "foo"}), kMovedFoo);
  EXPECT_NE(run({"CLIENT", "INFO"}).find(" flags=r "), std::string::npos);
  EXPECT_EQ(run({"READWRITE"}), kOk);
  EXPECT_EQ(run({"GET", "bar"}), kMovedBar);
  run({"READONLY"});
  run({"RESET"});
  EXPECT_EQ(run({"GET", "bar"}), kMovedBar);
}

TEST_F(KeyRoutingTest, StaleReplicaSendsReadersToItsLeader) {
  run({"SET", "bar", "1"});
  become('b');
  run({"READONLY"});
  cluster_.set_leader_silence(3'000'000);
  EXPECT_EQ(run({"GET", "bar"}), bulk("1")) << "there is no limit";
  run({"CONFIG", "SET", "replica-max-staleness", "2500"});
  EXPECT_EQ(run({"GET", "bar"}), kMovedBar);
  cluster_.set_leader_silence(1'000'000);
  EXPECT_EQ(run({"GET", "bar"}), bulk("1"));
  cluster_.set_leader_silence(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(run({"GET", "bar"}), kMovedBar) << "there is no link";
}

TEST_F(KeyRoutingTest, TransactionOfReadsMayRunOnAReplica) {
  run({"SET", "bar", "1"});
  become('b');
  run({"READONLY"});
  run({"MULTI"});
  EXPECT_EQ(run({"GET", "bar"}), kQueued);
  EXPECT_EQ(run({"EXEC"}), array({bulk("1")}));
  run({"MULTI"});
  EXPECT_EQ(run({"SET", "bar", "2"}), kMovedBar);
  EXPECT_EQ(run({"EXEC"}), kAborted);
}

TEST_F(KeyRoutingTest, SubscriberIsRedirectedFirst) {
  run({"SSUBSCRIBE", "bar"});
  EXPECT_EQ(run({"GET", "foo"}), kMovedFoo);
  EXPECT_EQ(run({"SPUBLISH", "foo", "m"}), kMovedFoo);
  EXPECT_EQ(run({"DEL", "foo", "bar"}), kCrossed);
  EXPECT_EQ(run({"GET", "bar"}).substr(0, 26), "-ERR Can't execute 'get': ");
  cluster_.set_service(Service::kDown);
  EXPECT_EQ(run({"GET", "bar"}), kDown);
}

TEST_F(KeyRoutingTest, ForeignKeySpoilsTheTransaction) {
  run({"MULTI"});
  EXPECT_EQ(run({"SET", "bar", "1"}), kQueued);
  EXPECT_EQ(run({"SET", "foo", "1"}), kMovedFoo);
  EXPECT_EQ(run({"EXEC"}), kAborted);
  EXPECT_EQ(run({"EXISTS", "bar"}), integer(0));
}

TEST_F(KeyRoutingTest, ExecIsMovedWhenTheSlotHasLeft) {
  run({"MULTI"});
  EXPECT_EQ(run({"SET", "bar", "1"}), kQueued);
  cluster::Topology topology = cluster::sample_topology();
  std::swap(topology.shards[0].slots, topology.shards[1].slots);
  take('a', topology);
  EXPECT_EQ(run({"EXEC"}), error(cluster::moved_error(5061, "10.0.0.3", 7001)));
  EXPECT_EQ(run({"EXEC"}), error(kExecWithoutMulti));
}

TEST_F(KeyRoutingTest, WithoutAPermitTheLeaderServesNothing) {
  run({"SET", "bar", "1"});
  cluster_.set_service(Service::kDown);
  EXPECT_EQ(run({"GET", "bar"}), kDown);
  EXPECT_EQ(run({"SET", "bar", "2"}), kDown);
  EXPECT_EQ(run({"GET", "foo"}), kMovedFoo);
  run({"MULTI"});
  EXPECT_EQ(run({"GET", "bar"}), kDown);
  EXPECT_EQ(run({"EXEC"}), kAborted);
  run({"CONFIG", "SET", "cluster-allow-reads-when-down", "yes"});
  EXPECT_EQ(run({"GET", "bar"}), bulk("1"));
  EXPECT_EQ(run({"SET", "bar", "2"}), error(cluster::kClusterOnlyReads));
}

TEST_F(KeyRoutingTest, ClientsOfANewLeaderAreHeldBack) {
  cluster_.set_service(Service::kHeld);
  EXPECT_EQ(run({"SET", "bar", "1"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  EXPECT_EQ(run({"SET", "foo", "1"}), kMovedFoo);
  run({"MULTI"});
  EXPECT_EQ(run({"SET", "bar", "1"}), kQueued);
  EXPECT_EQ(run({"EXEC"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  cluster_.set_service(Service::kUp);
  EXPECT_EQ(run({"EXEC"}), array({kOk}));
}

// FLUSHALL, FLUSHDB and SWAPDB name no keys. Like other writes, they wait during a handover, and
// fail if the server does not serve its shard.
TEST_F(KeyRoutingTest, WritesWithoutKeysWaitForThePermit) {
  run({"SET", "bar", "1"});
  cluster_.set_service(Service::kHeld);
  for (const char* command : {"FLUSHALL", "FLUSHDB"}) {
    EXPECT_EQ(run({command}), "") << command;
    EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack) << command;
  }
  EXPECT_EQ(run({"SWAPDB", "0", "1"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  EXPECT_EQ(run({"DBSIZE"}), integer(1));
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  run({"MULTI"});
  EXPECT_EQ(run({"FLUSHALL"}), kQueued);
  EXPECT_EQ(run({"EXEC"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  cluster_.set_service(Service::kDown);
  EXPECT_EQ(run({"EXEC"}), kDown);
  EXPECT_EQ(run({"FLUSHALL"}), kDown);
  EXPECT_EQ(run({"DBSIZE"}), integer(1));
  cluster_.set_service(Service::kUp);
  EXPECT_EQ(run({"SWAPDB", "0", "1"}), error(not_in_cluster("SWAPDB")));
  EXPECT_EQ(run({"FLUSHALL"}), kOk);
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
  become('9');
  EXPECT_EQ(run({"FLUSHALL"}), error(cluster::kSlotNotServed));
}

// A demoted leader becomes a read-only replica before it learns the address of the new leader.
// Until then it holds back the writes of its clients.
TEST_F(KeyRoutingTest, DeposedLeaderHoldsClientsUntilRedirected) {
  EXPECT_EQ(run_as_other({"MULTI"}), kOk);
  state_.availability.begin(Availability::kReadOnlyReplica);
  EXPECT_EQ(run({"SET", "bar", "1"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  EXPECT_EQ(run({"FLUSHALL"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  EXPECT_EQ(run({"GET", "bar"}), kNull);
  EXPECT_EQ(run_as_other({"SET", "bar", "1"}), kQueued);
  EXPECT_EQ(run_as_other({"EXEC"}), "");
  EXPECT_EQ(other_->last_result.outcome, Outcome::kHeldBack);
  become('b');
  EXPECT_EQ(run({"SET", "bar", "1"}), kMovedBar);
  EXPECT_EQ(run_as_other({"EXEC"}), kMovedBar);
  // FLUSHALL has no keys, so a redirection could name no server.
  EXPECT_EQ(run({"FLUSHALL"}), error(kReplicaIsReadOnly));
}

TEST_F(KeyRoutingTest, ShardChannelsAreRoutedLikeKeys) {
  EXPECT_EQ(run({"SPUBLISH", "foo", "m"}), kMovedFoo);
  EXPECT_EQ(run({"SPUBLISH", "bar", "m"}), integer(0));
  EXPECT_EQ(run({"SSUBSCRIBE", "foo"}), kMovedFoo);
  become('b');
  EXPECT_EQ(run({"SPUBLISH", "bar", "m"}), kMovedBar);
  EXPECT_EQ(run_as_other({"SSUBSCRIBE", "bar"}),
            "*3\r\n" + bulk("ssubscribe") + bulk("bar") + integer(1));
}

TEST_F(KeyRoutingTest, ClassicChannelsAreRefusedRatherThanLost) {
  EXPECT_THAT(run({"PUBLISH", "a", "m"}), is_error("ERR", "PUBLISH"));
  EXPECT_THAT(run({"SUBSCRIBE", "a"}), is_error("ERR", " SUBSCRIBE"));
  EXPECT_THAT(run({"PSUBSCRIBE", "a*"}), is_error("ERR", "PSUBSCRIBE"));
  EXPECT_EQ(run({"UNSUBSCRIBE"}).front(), '*');
  // Each server of a cluster publishes the events of its own keys. So a client may subscribe to
  // them on any server, whatever the slot of the pattern.
  EXPECT_EQ(run({"PSUBSCRIBE", "__keyevent@0__:*"}).front(), '*');
  EXPECT_EQ(run_as_other({"SUBSCRIBE", "__redis__:invalidate"}).front(), '*');
}

TEST_F(KeyRoutingTest, JournalCommandsAreNotRouted) {
  client_->session->origin = CommandOrigin::kOwnJournal;
  EXPECT_EQ(run({"SET", "foo", "1"}), kOk);
  EXPECT_EQ(run({"PUBLISH", "a", "m"}), integer(0));
}

}  // namespace
}  // namespace server
