// SPDX-License-Identifier: MIT
#include "server/cluster_tool/cluster_tool.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/keyspace/slot.h"
#include "persistence/files/file.h"
#include "server/cluster/etcd_keys.h"
#include "server/cluster/topology.h"
#include "server/cluster_tool/backup.h"
#include "tests/server/cluster/etcd_store.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/server/cluster_tool/played_node.h"
#include "tests/support/temp_directory.h"

namespace server::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const EtcdKeys kTestKeys("test");

TEST(ClusterToolTest, NamesAndEndpointsAreChecked) {
  EXPECT_FALSE(ClusterTool::make({.endpoints = {"http://127.0.0.1:1"}}, "Big Name", {}));
  EXPECT_FALSE(ClusterTool::make({.endpoints = {"127.0.0.1:1"}}, "a", {}));
  EXPECT_TRUE(ClusterTool::make({.endpoints = {"http://127.0.0.1:1"}}, "a", {}));
}

TEST(ClusterToolTest, NothingHappensWithoutEtcd) {
  const auto tool = ClusterTool::make({.endpoints = {"http://127.0.0.1:1"}}, "a", {});
  ASSERT_TRUE(tool);
  const auto created = (*tool)->create({{"127.0.0.1", 1}}, 0);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().message, "ERR etcd: http://127.0.0.1:1: connect: Connection refused");
  EXPECT_FALSE((*tool)->status());
}

// Tests commands of bloomery-cluster with a simulated etcd and simulated servers.
// tests/system/cluster/cluster_tool_test.py uses a real etcd.
class ClusterToolCallsTest : public ::testing::Test {
 protected:
  using Nodes = std::vector<std::unique_ptr<PlayedNode>>;

  static std::string text_of(const core::Result<Done>& done) {
    return done ? done->text : done.error().message;
  }
  // Runs a command that must fail and must change nothing in etcd. Returns its error.
  std::string refusal(const std::function<core::Result<Done>()>& command) {
    const uint64_t before = etcd_.revision();
    const auto done = command();
    EXPECT_FALSE(done) << text_of(done);
    EXPECT_EQ(etcd_.revision(), before);
    return text_of(done);
  }
  void register_node(const PlayedNode& node) { etcd_.put(kTestKeys.alive(node.id), "{}"); }
  std::unique_ptr<PlayedNode> node(char digit) {
    auto node = std::make_unique<PlayedNode>(digit);
    register_node(*node);
    return node;
  }
  Nodes create(const std::string& digits, unsigned replicas) {
    Nodes nodes;
    std::vector<Address> addresses;
    for (const char digit : digits) {
      nodes.push_back(node(digit));
      addresses.push_back(nodes.back()->address());
    }
    const auto done = tool_->create(addresses, replicas);
    EXPECT_TRUE(done) << text_of(done);
    return nodes;
  }
  Topology topology() const {
    auto parsed = parse_topology(etcd_.value(kTestKeys.topology));
    EXPECT_TRUE(parsed);
    return *std::move(parsed);
  }
  // Returns the text of a cluster.json, as a server of an older version sends it.
  std::string file_of(const PlayedNode& node, const Topology& topology) const {
    NodeFile file;
    file.id = node.id;
    file.topology = {topology, etcd_.revision()};
    file.kept_shard = topology.shards.front().name;
    file.kept_epoch = topology.shards.front().epoch;
    return node_file_text(file);
  }
  static Node node_of(const PlayedNode& node) {
    return {node.id, node.address().host, node.address().port, 0, ""};
  }
  static Address by_name(const PlayedNode& node) { return {"localhost", node.address().port}; }
  void change(const std::function<void(Shard&)>& edit) {
    Topology changed = topology();
    edit(changed.shards.front());
    etcd_.put(kTestKeys.topology, topology_json(changed));
  }

  EtcdStore etcd_;
  std::unique_ptr<ClusterTool> tool_ = *ClusterTool::make(
      {.endpoints = {etcd_.url()}, .call_limit = std::chrono::seconds(10)}, "test", {});
};

TEST_F(ClusterToolCallsTest, FirstNodesLeadAndTheOthersFollow) {
  const Nodes nodes = create("abcdef", 1);
  const Topology made = topology();
  ASSERT_EQ(made.shards.size(), 3U);
  EXPECT_EQ(made.nodes.size(), 6U);
  EXPECT_EQ(made.shards[1].leader, nodes[1]->id);
  EXPECT_THAT(made.shards[1].members, ElementsAre(nodes[1]->id, nodes[4]->id));
  EXPECT_THAT(made.shards[1].insync, ElementsAre(nodes[1]->id));
}

TEST_F(ClusterToolCallsTest, AllSlotsAreOwned) {
  (void)create("abc", 0);
  const std::string document = etcd_.value(kTestKeys.topology);
  for (const char* slots : {"\"0-5460\"", "\"5461-10922\"", "\"10923-16383\""}) {
    EXPECT_THAT(document, HasSubstr(slots));
  }
}

TEST_F(ClusterToolCallsTest, AClusterIsMadeOnce) {
  const Nodes nodes = create("a", 0);
  EXPECT_THAT(refusal([&] { return tool_->create({nodes[0]->address()}, 0); }),
              HasSubstr("exists already"));
}

TEST_F(ClusterToolCallsTest, AChangeWithoutReplyIsFinishedOnce) {
  for (const auto when : {EtcdStore::HangUp::kBefore, EtcdStore::HangUp::kAfter}) {
    etcd_.remove(kTestKeys.topology);
    const auto only = node('a');
    const uint64_t before = etcd_.revision();
    etcd_.hang_up_at_next_change(when);
    const auto done = tool_->create({only->address()}, 0);
    EXPECT_TRUE(done) << text_of(done);
    EXPECT_EQ(etcd_.revision(), before + 1);
  }
}

TEST_F(ClusterToolCallsTest, AStrangerIsNoNode) {
  const auto good = node('a');
  const PlayedNode stranger('b');
  EXPECT_THAT(refusal([&] {
                return tool_->create({good->address(), stranger.address()}, 0);
              }),
              HasSubstr("has not registered in cluster 'test'"));
}

TEST_F(ClusterToolCallsTest, OnlyEmptyServersJoin) {
  const auto full = node('a');
  full->keys = 3;
  EXPECT_THAT(refusal([&] { return tool_->create({full->address()}, 0); }),
              HasSubstr("holds 3 keys"));
}

TEST_F(ClusterToolCallsTest, ServerWithoutClusterModeNamesTheOption) {
  const auto plain = node('a');
  plain->is_enabled = false;
  EXPECT_THAT(refusal([&] { return tool_->create({plain->address()}, 0); }),
              HasSubstr("--cluster-enabled yes"));
}

TEST_F(ClusterToolCallsTest, AServerIsNamedOnce) {
  const auto one = node('a');
  const PlayedNode twin('a');
  EXPECT_THAT(refusal([&] {
                return tool_->create({one->address(), twin.address()}, 0);
              }),
              HasSubstr("named twice"));
}

TEST_F(ClusterToolCallsTest, ReportsAnAddressWithoutServer) {
  const auto good = node('a');
  EXPECT_THAT(refusal([&] {
                return tool_->create({good->address(), {"127.0.0.1", 1}}, 0);
              }),
              HasSubstr("refused"));
}

TEST_F(ClusterToolCallsTest, TooFewForTheReplicasIsAnError) {
  const auto good = node('a');
  EXPECT_THAT(refusal([&] { return tool_->create({good->address()}, 1); }), HasSubstr("too few"));
}

TEST_F(ClusterToolCallsTest, ANewNodeJoinsTheShardThatIsNamed) {
  const Nodes nodes = create("ab", 0);
  const auto added = node('c');
  EXPECT_THAT(text_of(tool_->add(added->address(), "s2")), HasSubstr("replica of shard s2"));
  EXPECT_THAT(topology().shards[1].members, ElementsAre(nodes[1]->id, added->id));
}

TEST_F(ClusterToolCallsTest, ANewNodeJoinsTheSmallestShard) {
  const Nodes nodes = create("ab", 0);
  const auto second = node('c');
  ASSERT_TRUE(tool_->add(second->address(), "s2"));
  const auto smallest = node('d');
  EXPECT_THAT(text_of(tool_->add(smallest->address(), "")), HasSubstr("replica of shard s1"));
}

TEST_F(ClusterToolCallsTest, RejectsASecondJoinAndAnUnknownShard) {
  const Nodes nodes = create("ab", 0);
  const auto added = node('c');
  ASSERT_TRUE(tool_->add(added->address(), "s2"));
  EXPECT_THAT(refusal([&] { return tool_->add(added->address(), ""); }),
              HasSubstr("in the cluster already"));
  const auto other = node('e');
  EXPECT_THAT(refusal([&] { return tool_->add(other->address(), "s7"); }),
              HasSubstr("no shard 's7'"));
}

TEST_F(ClusterToolCallsTest, NewIdTakesTheDeadMembersPlace) {
  const Nodes nodes = create("ab", 1);
  const std::string former = nodes[1]->id;
  etcd_.remove(kTestKeys.alive(former));
  Topology moved = topology();
  const auto back = node('c');
  moved.node(former)->port = back->address().port;  // the topology has the server's new port
  etcd_.put(kTestKeys.topology, topology_json(moved));
  EXPECT_THAT(text_of(tool_->add(back->address(), "")), HasSubstr("replica of shard s1"));
  EXPECT_THAT(topology().shards[0].members, ElementsAre(nodes[0]->id, back->id));
}

TEST_F(ClusterToolCallsTest, LostShardIsReplacedOnceTheLossIsAccepted) {
  const Nodes nodes = create("ab", 0);
  const auto empty = node('c');
  const auto replace = [&](bool accepts_loss) {
    return tool_->replace("s1", empty->address(), accepts_loss);
  };
  EXPECT_THAT(refusal([&] { return replace(true); }), HasSubstr("is alive"));
  etcd_.remove(kTestKeys.alive(nodes[0]->id));
  EXPECT_THAT(refusal([&] { return replace(false); }), HasSubstr("--accept-loss"));
  EXPECT_THAT(text_of(replace(true)), HasSubstr("leads shard s1 now, without its former data"));
  EXPECT_THAT(topology().shards[0].members, ElementsAre(empty->id));
}

TEST_F(ClusterToolCallsTest, DeletedTopologyIsRecoveredFromAServer) {
  const Nodes nodes = create("ab", 0);
  const Topology before = topology();
  nodes[0]->keep(file_of(*nodes[0], before));
  etcd_.remove(kTestKeys.topology);
  EXPECT_THAT(text_of(tool_->recover({nodes[0]->address()}, false)), HasSubstr("with --yes"));
  EXPECT_EQ(etcd_.value(kTestKeys.topology), "");
  const std::string done = text_of(tool_->recover({nodes[0]->address()}, true));
  EXPECT_THAT(done, HasSubstr("ignored: " + nodes[1]->address().text() + ": ERR not played"))
      << "it is asked because the first one names it";
  EXPECT_EQ(topology(), before);
  EXPECT_THAT(text_of(tool_->recover({nodes[0]->address()}, true)), HasSubstr("nothing"));
}

TEST_F(ClusterToolCallsTest, RecoverRefusesAnotherCluster) {
  const Nodes nodes = create("a", 0);
  PlayedNode stranger('c');
  const Topology other = *plan_create({node_of(stranger)}, 0);
  // The file of an older version has no name. So a server of another cluster is recognized by its
  // option cluster-name, or by the nodes of its topology.
  stranger.keep(file_of(stranger, other), "other");
  EXPECT_THAT(refusal([&] { return tool_->recover({stranger.address()}, true); }),
              AllOf(HasSubstr("'other'"), HasSubstr("'test'")));
  stranger.keep(file_of(stranger, other));
  EXPECT_THAT(refusal([&] { return tool_->recover({stranger.address()}, true); }),
              HasSubstr("topology of other servers"));
}

TEST_F(ClusterToolCallsTest, RecoverIgnoresAReusedAddress) {
  const Nodes nodes = create("ab", 0);
  const Topology before = topology();
  nodes[0]->keep(file_of(*nodes[0], before), "test");
  Topology other = *plan_create({node_of(*nodes[1])}, 0);
  other.shards.front().epoch = 9;
  nodes[1]->keep(file_of(*nodes[1], other), "other");
  etcd_.remove(kTestKeys.topology);
  const auto done = tool_->recover({nodes[0]->address()}, true);
  ASSERT_TRUE(done) << text_of(done);
  EXPECT_THAT(done->text, HasSubstr("ignored: " + nodes[1]->address().text() + " belongs to"));
  EXPECT_EQ(topology(), before);
}

TEST_F(ClusterToolCallsTest, OnlyReplicasAreRemoved) {
  const Nodes nodes = create("ab", 0);
  const auto added = node('c');
  ASSERT_TRUE(tool_->add(added->address(), "s2"));
  EXPECT_THAT(refusal([&] { return tool_->remove(nodes[1]->address()); }),
              HasSubstr("leads shard s2"));
  EXPECT_TRUE(tool_->remove(added->address()));
  EXPECT_EQ(topology().nodes.size(), 2U);
  EXPECT_THAT(refusal([&] { return tool_->remove(nodes[1]->address()); }), HasSubstr("no owner"));
  EXPECT_THAT(refusal([&] { return tool_->remove(added->address()); }), HasSubstr("no node"));
}

TEST_F(ClusterToolCallsTest, ServersAreFoundByOtherNames) {
  const Nodes nodes = create("ab", 0);
  const auto added = node('c');
  ASSERT_TRUE(tool_->add(added->address(), "s2"));
  EXPECT_THAT(refusal([&] { return tool_->fail_over("s2", by_name(*nodes[1]), false); }),
              HasSubstr("leads it already"));
  const auto removed = tool_->remove(by_name(*added));
  EXPECT_TRUE(removed) << text_of(removed);
  EXPECT_EQ(topology().node(added->id), nullptr);
  EXPECT_THAT(refusal([&] { return tool_->remove(by_name(*added)); }), HasSubstr("`status`"));
}

TEST_F(ClusterToolCallsTest, LocalhostIsNoAddressForClients) {
  const Nodes nodes = create("a", 0);
  const auto added = node('b');
  EXPECT_THAT(refusal([&] { return tool_->add(by_name(*added), ""); }),
              HasSubstr("cluster-announce-ip"));
}

TEST_F(ClusterToolCallsTest, NoFailoverWithoutASyncedReplica) {
  const Nodes nodes = create("ab", 1);
  EXPECT_THAT(refusal([&] { return tool_->fail_over("s1", {}, false); }),
              HasSubstr("no replica is alive and in sync"));
}

TEST_F(ClusterToolCallsTest, AReplicaInSyncIsAskedToTakeOver) {
  const Nodes nodes = create("ab", 1);
  PlayedNode& replica = *nodes[1];
  change([&](Shard& shard) { shard.insync.push_back(replica.id); });
  replica.set_on_failover([&] {
    change([&](Shard& shard) {
      shard.leader = replica.id;
      shard.epoch = 2;
    });
  });
  EXPECT_THAT(text_of(tool_->fail_over("s1", {}, false)), HasSubstr("leads shard s1 now, epoch 2"));
  EXPECT_THAT(replica.failovers(), ElementsAre("CLUSTER FAILOVER"));
}

TEST_F(ClusterToolCallsTest, ACancelledFailoverIsRequestedAgain) {
  const Nodes nodes = create("ab", 1);
  PlayedNode& replica = *nodes[1];
  change([&](Shard& shard) { shard.insync.push_back(replica.id); });
  int requests = 0;
  replica.set_on_failover([&] {
    if (++requests < 2) return;
    change([&](Shard& shard) {
      shard.leader = replica.id;
      shard.epoch = 2;
    });
  });
  EXPECT_THAT(text_of(tool_->fail_over("s1", {}, false)), HasSubstr("leads shard s1 now, epoch 2"));
  EXPECT_THAT(replica.failovers(), ElementsAre("CLUSTER FAILOVER", "CLUSTER FAILOVER"));
}

TEST_F(ClusterToolCallsTest, AReplicaThatIsNotInSyncTakesNothingOver) {
  const Nodes nodes = create("ab", 1);
  for (const bool is_forced : {false, true}) {
    EXPECT_THAT(refusal([&] { return tool_->fail_over("s1", nodes[1]->address(), is_forced); }),
                HasSubstr("not in sync"));
  }
  EXPECT_TRUE(nodes[1]->failovers().empty());
}

TEST_F(ClusterToolCallsTest, FromALeaderThatIsGoneAReplicaTakesOverByForce) {
  const Nodes nodes = create("ab", 1);
  PlayedNode& replica = *nodes[1];
  change([&](Shard& shard) { shard.insync.push_back(replica.id); });
  etcd_.remove(kTestKeys.alive(nodes[0]->id));
  EXPECT_THAT(refusal([&] { return tool_->fail_over("s1", replica.address(), false); }),
              HasSubstr("with --force"));
  EXPECT_TRUE(replica.failovers().empty());
  replica.set_on_failover([&] {
    change([&](Shard& shard) {
      shard.leader = replica.id;
      shard.insync = {replica.id};
      shard.epoch = 2;
    });
  });
  EXPECT_THAT(text_of(tool_->fail_over("s1", replica.address(), true)),
              HasSubstr("leads shard s1 now"));
  EXPECT_THAT(replica.failovers(), ElementsAre("CLUSTER FAILOVER FORCE"));
}

TEST_F(ClusterToolCallsTest, ADocumentOfANewerVersionIsNotWrittenOver) {
  const auto good = node('a');
  etcd_.put(kTestKeys.topology, R"({"format":2})");
  EXPECT_THAT(refusal([&] { return tool_->add(good->address(), ""); }), HasSubstr("newer version"));
  EXPECT_THAT(refusal([&] { return tool_->create({good->address()}, 0); }),
              HasSubstr("newer version"));
}

TEST_F(ClusterToolCallsTest, WithoutAClusterThereIsNothingToChange) {
  const auto good = node('a');
  EXPECT_THAT(refusal([&] { return tool_->add(good->address(), ""); }),
              HasSubstr("there is no cluster 'test'"));
  EXPECT_FALSE(tool_->status());
}

TEST_F(ClusterToolCallsTest, TheStatusTellsWhoIsThere) {
  const Nodes nodes = create("ab", 0);
  nodes[1]->stop();
  etcd_.remove(kTestKeys.alive(nodes[1]->id));
  const auto status = tool_->status();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(status->alive, ElementsAre(nodes[0]->id));
  ASSERT_EQ(status->facts.size(), 2U);
  EXPECT_TRUE(status->facts[0]);
  ASSERT_FALSE(status->facts[1]);
  EXPECT_THAT(status->facts[1].error().message, HasSubstr("refused"));
}

TEST_F(ClusterToolCallsTest, RejectedPasswordIsReported) {
  const Nodes nodes = create("a", 0);
  nodes[0]->keep(file_of(*nodes[0], topology()));
  NodeAccess access;
  access.password = "wrong";
  const auto tool = ClusterTool::make({.endpoints = {etcd_.url()}}, "test", access);
  ASSERT_TRUE(tool);
  const std::string reason = nodes[0]->address().text() + ": ERR not played: AUTH";
  const auto status = (*tool)->status();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(status_table(*status), HasSubstr(reason));
  EXPECT_THAT(status_json(*status), HasSubstr(reason));
  EXPECT_THAT(refusal([&] { return (*tool)->recover({nodes[0]->address()}, true); }),
              HasSubstr(reason));
}

// Tests of `restore`. Its servers hold the keys of a backup of two shards.
class RestoreCallsTest : public ClusterToolCallsTest {
 protected:
  static constexpr int kKeys = 5;

  RestoreCallsTest() {
    Topology saved = *plan_create(
        {{id_of('1'), "10.0.0.1", 7001, 0, ""}, {id_of('2'), "10.0.0.2", 7001, 0, ""}}, 0);
    const Backup backup{
        "test",
        {saved, 12},
        {{"s1", "10.0.0.1:7001", {"", 0, 1, kKeys}}, {"s2", "10.0.0.2:7001", {"", 0, 1, kKeys}}}};
    EXPECT_TRUE(persistence::write_file_atomically(
        fmt::format("{}/{}", directory_.path(), kBackupFile), backup_json(backup)));
    for (const auto& server : servers_) server->keys = kKeys;
    servers_[0]->set_slot_keys(kFirstSlots[0], kKeys);
    servers_[1]->set_slot_keys(kFirstSlots[1], kKeys);
  }
  core::Result<Done> restore() {
    return tool_->restore(directory_.path(), {servers_[0]->address(), servers_[1]->address()});
  }

  static constexpr std::array<unsigned, 2> kFirstSlots{0, 8192};  // first slot of each shard

  support::TempDirectory directory_;
  std::array<std::unique_ptr<PlayedNode>, 2> servers_{node('a'), node('b')};
};

TEST_F(RestoreCallsTest, KeysMayExpireMeanwhile) {
  // INFO has counted keys that have expired when the keys of the slots are counted.
  servers_[0]->set_slot_keys(kFirstSlots[0], 1);
  servers_[1]->set_slot_keys(kFirstSlots[1], 0);
  const auto done = restore();
  ASSERT_TRUE(done) << text_of(done);
  EXPECT_EQ(topology().shard("s2")->leader, servers_[1]->id);
}

TEST_F(RestoreCallsTest, KeysOfAnotherShardAreRefused) {
  servers_[0]->set_slot_keys(kFirstSlots[1], 2);
  servers_[0]->set_slot_keys(core::keyspace::kSlotCount - 1, 1);
  EXPECT_THAT(refusal([&] { return restore(); }),
              HasSubstr(servers_[0]->address().text() + ": it holds 3 keys"));
}

TEST_F(RestoreCallsTest, ServerWithoutKeysIsRefused) {
  servers_[1]->keys = 0;
  EXPECT_THAT(refusal([&] { return restore(); }), HasSubstr("dump.rdb"));
}

}  // namespace
}  // namespace server::cluster
