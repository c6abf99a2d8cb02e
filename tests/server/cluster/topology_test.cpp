// SPDX-License-Identifier: MIT
#include "server/cluster/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/cluster/sample_topology.h"
#include "tests/support/error_matcher.h"

namespace server::cluster {
namespace {

std::string fault_of(const Topology& topology) {
  const auto checked = check_topology(topology);
  return checked ? "" : checked.error().message;
}

TEST(TopologyTest, TheSampleIsValid) {
  EXPECT_EQ(fault_of(sample_topology()), "");
}

TEST(TopologyTest, FindsNodesAndTheirShards) {
  const Topology topology = sample_topology();
  EXPECT_EQ(topology.node(id_of('b'))->port, 7001);
  EXPECT_EQ(topology.node(id_of('d')), nullptr);
  EXPECT_EQ(topology.shard("s2")->leader, id_of('c'));
  EXPECT_EQ(topology.shard("s3"), nullptr);
  EXPECT_EQ(topology.shard_of(id_of('b'))->name, "s1");
  EXPECT_EQ(topology.shard_of(id_of('d')), nullptr);
}

TEST(TopologyTest, EachSlotHasOneOwner) {
  Topology topology = sample_topology();
  topology.shards[0].slots = {{0, 5460}};
  EXPECT_THAT(fault_of(topology), is_error("ERR", "slot 7000 has no owner"));
  topology.shards[0].slots = {{0, 5461}, {7000, 7000}};
  EXPECT_THAT(fault_of(topology), is_error("ERR", "slot 5461 has two owners"));
  topology.shards[0].slots = {{0, 5460}, {7000, 7000}, {7001, 7001}};
  EXPECT_THAT(fault_of(topology), is_error("ERR", "slot 7001 has two owners"));
  topology = sample_topology();
  topology.shards[1].slots = {{5461, 6999}, {7001, 16382}};
  EXPECT_THAT(fault_of(topology), is_error("ERR", "slot 16383 has no owner"));
  topology.shards[1].slots = {{5461, 6999}, {7001, 16384}};
  EXPECT_THAT(fault_of(topology), is_error("ERR", "shard s2: its slots"));
}

TEST(TopologyTest, EachNodeHasOnePlace) {
  Topology topology = sample_topology();
  topology.shards[1].members.push_back(id_of('b'));
  EXPECT_THAT(fault_of(topology), is_error("ERR", "node " + id_of('b') + " has two"));
  topology = sample_topology();
  topology.shards[0].members.pop_back();
  topology.shards[0].insync.pop_back();
  EXPECT_THAT(fault_of(topology), is_error("ERR", "node " + id_of('b') + " belongs to no"));
  topology = sample_topology();
  topology.shards[0].members.push_back(id_of('d'));
  EXPECT_THAT(fault_of(topology), is_error("ERR", "unknown node '" + id_of('d') + "'"));
  topology = sample_topology();
  topology.nodes[1].ip = "10.0.0.1";
  EXPECT_THAT(fault_of(topology), is_error("ERR", "address 10.0.0.1:7001"));
}

TEST(TopologyTest, TheLeaderIsInSync) {
  Topology topology = sample_topology();
  topology.shards[0].insync = {id_of('b')};
  EXPECT_THAT(fault_of(topology), is_error("ERR", "leader of shard s1"));
  topology.shards[0].insync = {id_of('a'), id_of('c')};
  EXPECT_NE(fault_of(topology), "");
}

TEST(TopologyTest, AddressesCannotBreakAReply) {
  for (const char* const ip : {"", "10.0.0.1\r\n+OK", "a b", "a,b"}) {
    Topology topology = sample_topology();
    topology.nodes[0].ip = ip;
    EXPECT_NE(fault_of(topology), "") << ip;
  }
}

TEST(TopologyTest, SupersedesByRevisionUnlessAnEpochHasFallen) {
  const TopologyVersion known{sample_topology(), 10};
  EXPECT_TRUE(supersedes(known, {}));
  EXPECT_FALSE(supersedes(known, known));
  EXPECT_TRUE(supersedes({sample_topology(), 11}, known));
  EXPECT_FALSE(supersedes({sample_topology(), 9}, known));
  TopologyVersion other{sample_topology(), 11};
  --other.topology.shards[0].epoch;
  EXPECT_FALSE(supersedes(other, known));
  other.topology.shards[0].epoch += 2;
  other.revision = 9;
  EXPECT_FALSE(supersedes(other, known)) << "one epoch has grown";
  ++other.topology.shards[1].epoch;
  EXPECT_TRUE(supersedes(other, known)) << "all have";
}

}  // namespace
}  // namespace server::cluster
