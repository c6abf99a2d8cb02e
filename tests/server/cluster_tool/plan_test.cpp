// SPDX-License-Identifier: MIT
#include "server/cluster_tool/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/cluster/sample_topology.h"
#include "tests/support/error_matcher.h"

namespace server::cluster {
namespace {

std::vector<Node> six_nodes() {
  std::vector<Node> nodes;
  for (const char digit : {'f', 'e', 'd', 'c', 'b', 'a'}) {
    nodes.push_back({id_of(digit), "10.0.0.1", static_cast<uint16_t>(digit), 0, ""});
  }
  return nodes;
}

std::string error_of(const auto& result) {
  return result ? "" : result.error().message;
}

// Matches an error that contains `noun` and recommends the command `replace` for the shard.
auto is_error_or_replace(const std::string& noun, const std::string& shard) {
  return ::testing::AllOf(is_error("ERR", noun), ::testing::HasSubstr("`replace " + shard + " "));
}

TEST(PlanTest, AddressEndsInItsPort) {
  EXPECT_EQ(*parse_address("a.example:7001"), (Address{"a.example", 7001}));
  EXPECT_EQ(*parse_address("[::1]:7001"), (Address{"::1", 7001}));
  EXPECT_EQ(parse_address("::1:7001")->text(), "[::1]:7001");
  for (const std::string_view text : {"", "a", ":1", "a:", "a:0", "a:65536", "a:x", "[]:x"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
}

TEST(PlanTest, FirstNodesLeadAndTheOthersFollowInTurn) {
  const auto topology = plan_create(six_nodes(), 1);
  ASSERT_TRUE(topology) << topology.error().message;
  ASSERT_EQ(topology->shards.size(), 3U);
  const Shard& first = topology->shards[0];
  EXPECT_EQ(first.name, "s1");
  EXPECT_EQ(first.leader, id_of('f'));
  EXPECT_EQ(first.members, (std::vector{id_of('f'), id_of('c')}));
  EXPECT_EQ(first.insync, std::vector{id_of('f')});
  EXPECT_EQ(slot_ranges_text(first.slots), "0-5460");
  EXPECT_EQ(topology->shards[2].members, (std::vector{id_of('d'), id_of('a')}));
}

TEST(PlanTest, SpareNodesFollow) {
  const auto topology = plan_create(six_nodes(), 3);
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->shards.size(), 1U);
  EXPECT_EQ(topology->shards[0].members.size(), 6U);
  EXPECT_FALSE(plan_create(six_nodes(), 6));
  EXPECT_FALSE(plan_create({}, 0));
}

TEST(PlanTest, TwoNodesWithOneAddressAreRefused) {
  auto nodes = six_nodes();
  nodes[1].port = nodes[0].port;
  EXPECT_NE(error_of(plan_create(nodes, 0)).find("two nodes have the address"), std::string::npos);
}

TEST(PlanTest, NodeJoinsTheSmallestShardOrTheOneNamed) {
  const Node node{id_of('d'), "10.0.0.4", 7001, 0, ""};
  const auto smallest = plan_add(sample_topology(), {}, node, "");
  ASSERT_TRUE(smallest);
  EXPECT_EQ(smallest->shard_of(node.id)->name, "s2");
  EXPECT_FALSE(smallest->shard_of(node.id)->is_insync(node.id));
  const auto named = plan_add(sample_topology(), {}, node, "s1");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->shard_of(node.id)->name, "s1");
  EXPECT_THAT(error_of(plan_add(sample_topology(), {}, node, "s9")), is_error("ERR", "'s9'"));
  EXPECT_FALSE(plan_add(sample_topology(), {}, sample_topology().nodes[0], ""));
}

TEST(PlanTest, NewIdTakesTheDeadMembersPlace) {
  const Node back{id_of('d'), "10.0.0.2", 7001, 7101, ""};
  const auto added = plan_add(sample_topology(), {id_of('a'), id_of('d')}, back, "");
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->shard("s1")->members, (std::vector{id_of('a'), id_of('d')}));
  EXPECT_EQ(added->shard("s1")->insync, std::vector{id_of('a')});
  EXPECT_EQ(added->node(id_of('b')), nullptr);
  const std::vector alive{id_of('a'), id_of('b'), id_of('d')};
  EXPECT_NE(error_of(plan_add(sample_topology(), alive, back, "")).find("two nodes have"),
            std::string::npos);
  const Node leader{id_of('d'), "10.0.0.1", 7001, 0, ""};
  EXPECT_NE(
      error_of(plan_add(sample_topology(), {id_of('b')}, leader, "")).find("`failover s1 --force`"),
      std::string::npos);
}

TEST(PlanTest, LostShardGetsAnEmptyLeader) {
  Topology topology = sample_topology();
  topology.shards[0].insync = {id_of('a')};
  const Node empty{id_of('d'), "10.0.0.4", 7001, 0, ""};
  const auto replaced = plan_replace(topology, {id_of('b'), id_of('c'), id_of('d')}, empty, "s1");
  ASSERT_TRUE(replaced) << replaced.error().message;
  const Shard& shard = *replaced->shard("s1");
  EXPECT_EQ(shard.leader, id_of('d'));
  EXPECT_EQ(shard.epoch, 8U);
  EXPECT_EQ(shard.members, (std::vector{id_of('d'), id_of('b')}));
  EXPECT_EQ(shard.insync, std::vector{id_of('d')});
  EXPECT_EQ(replaced->node(id_of('a')), nullptr) << "what it has is not to be wiped";
  // The node that replaces the dead leader may have the leader's address.
  const Node back{id_of('d'), "10.0.0.1", 7001, 0, ""};
  EXPECT_TRUE(plan_replace(topology, {id_of('b'), id_of('d')}, back, "s1"));
}

TEST(PlanTest, ShardWithLiveDataIsNotReplaced) {
  const Node empty{id_of('d'), "10.0.0.4", 7001, 0, ""};
  for (const char digit : {'a', 'b'}) {
    EXPECT_NE(error_of(plan_replace(sample_topology(), {id_of(digit)}, empty, "s1")).find("alive"),
              std::string::npos);
  }
  EXPECT_FALSE(plan_replace(sample_topology(), {}, empty, "s9"));
  EXPECT_FALSE(plan_replace(sample_topology(), {}, sample_topology().nodes[1], "s1"));
}

// If only the command `replace` can repair the shard, the errors of the other commands name
// `replace`.
TEST(PlanTest, RefusalsNameReplace) {
  Topology topology = sample_topology();
  topology.shards[0].insync = {id_of('a')};
  const std::vector alive{id_of('b')};
  const Address leader{"10.0.0.1", 7001};
  const Address replica{"10.0.0.2", 7001};
  const Node back{id_of('d'), "10.0.0.1", 7001, 0, ""};
  for (const std::string& refusal :
       {error_of(plan_failover(topology, alive, "s1", nullptr, true)),
        error_of(plan_failover(topology, alive, "s1", &replica, true)),
        error_of(plan_remove(topology, leader)), error_of(plan_add(topology, alive, back, ""))}) {
    EXPECT_NE(refusal.find("`replace s1 HOST:PORT --accept-loss`"), std::string::npos) << refusal;
  }
}

TEST(PlanTest, OnlyReplicasAreRemoved) {
  const auto removed = plan_remove(sample_topology(), {"10.0.0.2", 7001});
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->node(id_of('b')), nullptr);
  EXPECT_EQ(removed->shard("s1")->members, std::vector{id_of('a')});
  EXPECT_THAT(error_of(plan_remove(sample_topology(), {"10.0.0.1", 7001})),
              is_error_or_replace("`failover s1`", "s1"));
  EXPECT_THAT(error_of(plan_remove(sample_topology(), {"10.0.0.3", 7001})),
              is_error_or_replace("10.0.0.3:7001", "s2"));
  EXPECT_THAT(error_of(plan_remove(sample_topology(), {"10.0.0.9", 1})),
              is_error("ERR", "10.0.0.9:1"));
}

TEST(PlanTest, FailoverChoosesWhoIsAliveAndInSync) {
  const Topology topology = sample_topology();
  const std::vector<std::string> alive{id_of('a'), id_of('b'), id_of('c')};
  const auto chosen = plan_failover(topology, alive, "s1", nullptr, false);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->id, id_of('b'));
  const Address to{"10.0.0.2", 7001};
  EXPECT_TRUE(plan_failover(topology, alive, "s1", &to, false));
}

TEST(PlanTest, FailoverRefusesWhoMustNotLead) {
  Topology topology = sample_topology();
  const std::vector<std::string> alive{id_of('a'), id_of('b')};
  const Address leader{"10.0.0.1", 7001};
  const Address replica{"10.0.0.2", 7001};
  const Address other{"10.0.0.3", 7001};
  const auto refusal = [&](std::string_view shard, const Address* to, auto ids, bool force) {
    return error_of(plan_failover(topology, ids, shard, to, force));
  };
  EXPECT_THAT(refusal("s1", &leader, alive, false), is_error("ERR", "already"));
  EXPECT_THAT(refusal("s1", &other, alive, false), is_error("ERR", "10.0.0.3:7001"));
  EXPECT_THAT(refusal("s2", nullptr, alive, false), is_error_or_replace("no replica", "s2"));
  EXPECT_NE(refusal("s9", nullptr, alive, false), "");
  const std::vector only_leader{id_of('a')};
  EXPECT_THAT(refusal("s1", &replica, only_leader, true), is_error_or_replace("not alive", "s1"));
  const std::vector only_replica{id_of('b')};
  EXPECT_THAT(refusal("s1", &replica, only_replica, false), is_error("ERR", "--force"));
  EXPECT_EQ(refusal("s1", &replica, only_replica, true), "");
  topology.shards[0].insync = {id_of('a')};
  EXPECT_THAT(refusal("s1", &replica, alive, true), is_error_or_replace("not in sync", "s1"));
}

}  // namespace
}  // namespace server::cluster
