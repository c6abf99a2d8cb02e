// SPDX-License-Identifier: MIT
#include "server/cluster_tool/recovery.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/keyspace/slot.h"
#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kOfSample = 7;  // the epoch of shard s1 in the sample topology

core::Error unanswered(uint16_t port) {
  return {fmt::format("ERR 10.0.0.1:{}: Connection refused", port)};
}

KeptFile kept(uint16_t port, uint64_t revision, uint64_t epoch = kOfSample) {
  NodeFile file;
  file.id = id_of('a');
  file.topology = {sample_topology(), revision};
  file.topology.topology.shard("s1")->epoch = epoch;
  file.kept_shard = "s1";
  file.kept_epoch = epoch;
  return {{"10.0.0.1", port}, file};
}

// Returns the topology of a cluster that has no server of the sample topology.
Topology topology_of_others() {
  Topology topology = sample_topology();
  topology.nodes = {{id_of('d'), "10.0.1.1", 7001, 0, ""}};
  topology.shards = {
      {"s1", 1, id_of('d'), {id_of('d')}, {id_of('d')}, {{0, core::keyspace::kSlotCount - 1}}}};
  return topology;
}

TEST(RecoveryTest, DeletedTopologyIsPutBackAsItWas) {
  const auto recovery = plan_recovery(
      std::nullopt, 90, {kept(1, 40), kept(2, 41, 8), {{"10.0.0.1", 3}, unanswered(3)}});
  ASSERT_TRUE(recovery && recovery->topology);
  EXPECT_EQ(recovery->topology->shard("s1")->epoch, 8U);
  EXPECT_THAT(recovery->text, HasSubstr("no topology\n"));
  EXPECT_THAT(recovery->text, HasSubstr("10.0.0.1:2 keeps revision 41\n"));
  EXPECT_THAT(recovery->text, HasSubstr("ignored: 10.0.0.1:3: Connection refused\n"));
  EXPECT_THAT(recovery->text, HasSubstr("to be written: shard s1, epoch 8, leader "));
}

// The revisions of a new etcd are lower than those in the servers' files, so the recovery raises
// the epochs.
TEST(RecoveryTest, NewEtcdGetsHigherEpochs) {
  const auto recovery = plan_recovery(std::nullopt, 5, {kept(1, 40)});
  ASSERT_TRUE(recovery && recovery->topology);
  EXPECT_TRUE(supersedes({*recovery->topology, 6}, {sample_topology(), 40}));
}

TEST(RecoveryTest, OlderTopologyIsReplacedByOneWithHigherEpochs) {
  const TopologyVersion stored{sample_topology(), 30};
  const auto recovery = plan_recovery(stored, 30, {kept(1, 30), kept(2, 40, 9)});
  ASSERT_TRUE(recovery && recovery->topology);
  EXPECT_EQ(recovery->topology->shard("s1")->epoch, 10U);
  EXPECT_THAT(recovery->text, HasSubstr("etcd has revision 30\n"));
}

TEST(RecoveryTest, NewestTopologyNeedsNothing) {
  const TopologyVersion stored{sample_topology(), 40};
  const auto recovery = plan_recovery(stored, 60, {kept(1, 40), kept(2, 39)});
  ASSERT_TRUE(recovery);
  EXPECT_FALSE(recovery->topology);
  EXPECT_THAT(recovery->text, HasSubstr("nothing to recover"));
}

TEST(RecoveryTest, RefusesWhatIsNotTheNewestInEachShard) {
  const auto behind = plan_recovery(std::nullopt, 5, {kept(1, 40, 7), kept(2, 39, 8)});
  ASSERT_FALSE(behind);
  EXPECT_THAT(behind.error().message, HasSubstr("10.0.0.1:2 knows epoch 8 of shard s1"));
}

TEST(RecoveryTest, ErrorNamesEachServerWithoutTopology) {
  const auto none = plan_recovery(std::nullopt, 5, {kept(1, 0), {{"10.0.0.1", 3}, unanswered(3)}});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("10.0.0.1:1: it has seen no topology"));
  EXPECT_THAT(none.error().message, HasSubstr("10.0.0.1:3: Connection refused"));
}

TEST(RecoveryTest, OtherServersTopologyIsNotReplaced) {
  const Topology other = topology_of_others();
  ASSERT_TRUE(check_topology(other));
  // The result must not depend on the record of slots, which older versions did not write.
  for (const SlotRecord& record : {SlotRecord{}, SlotRecord{slots_checksum(other)}}) {
    for (const uint64_t revision : {uint64_t{30}, uint64_t{40}, uint64_t{50}}) {
      const auto refused =
          plan_recovery(TopologyVersion{other, revision}, 60, {kept(1, 40)}, record);
      ASSERT_FALSE(refused);
      EXPECT_THAT(refused.error().message, HasSubstr("other servers"));
      EXPECT_THAT(refused.error().message, HasSubstr("10.0.0.1:1"));
    }
  }
}

TEST(RecoveryTest, FileOfAnotherClusterIsAnError) {
  NodeFile file = *kept(1, 40).file;
  EXPECT_TRUE(check_cluster({"10.0.0.1", 1}, file, "c7")) << "the file has no name";
  file.cluster = "c7";
  EXPECT_TRUE(check_cluster({"10.0.0.1", 1}, file, "c7"));
  file.cluster = "c3";
  const auto checked = check_cluster({"10.0.0.1", 1}, file, "c7");
  ASSERT_FALSE(checked);
  for (const char* part : {"10.0.0.1:1", "'c3'", "'c7'", "--cluster"}) {
    EXPECT_THAT(checked.error().message, HasSubstr(part));
  }
}

}  // namespace
}  // namespace server::cluster
