// SPDX-License-Identifier: MIT
#include "server/cluster_tool/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kOfSample = 7;  // the epoch of shard s1 in the sample topology

KeptFile kept(uint16_t port, uint64_t revision, uint64_t epoch = kOfSample) {
  NodeFile file;
  file.id = id_of('a');
  file.topology = {sample_topology(), revision};
  file.topology.topology.shard("s1")->epoch = epoch;
  file.kept_shard = "s1";
  file.kept_epoch = epoch;
  return {{"10.0.0.1", port}, file};
}

TEST(RecoveryTest, DeletedTopologyIsPutBackAsItWas) {
  const auto recovery =
      plan_recovery(std::nullopt, 90, {kept(1, 40), kept(2, 41, 8), {{"10.0.0.1", 3}, {}}});
  ASSERT_TRUE(recovery && recovery->topology);
  EXPECT_EQ(recovery->topology->shard("s1")->epoch, 8U);
  EXPECT_THAT(recovery->text, HasSubstr("no topology\n"));
  EXPECT_THAT(recovery->text, HasSubstr("10.0.0.1:2 keeps revision 41\n"));
  EXPECT_THAT(recovery->text, HasSubstr("10.0.0.1:3 does not answer\n"));
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
  EXPECT_FALSE(plan_recovery(std::nullopt, 5, {{{"10.0.0.1", 3}, {}}}));
  EXPECT_FALSE(plan_recovery(std::nullopt, 5, {kept(1, 0)}));
}

}  // namespace
}  // namespace server::cluster
