// SPDX-License-Identifier: MIT
#include "server/cluster/slot_record.h"

#include <gtest/gtest.h>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

// Returns the sample topology with one slot moved from shard s2 to s1.
Topology moved_slots() {
  Topology topology = sample_topology();
  topology.shard("s1")->slots = {{0, 5461}, {7000, 7000}};
  topology.shard("s2")->slots = {{5462, 6999}, {7001, 16383}};
  return topology;
}

const TopologyVersion kKnown{sample_topology(), 9};

TEST(SlotRecordTest, ChecksumCoversShardsAndSlotsOnly) {
  Topology other_leader = sample_topology();
  other_leader.shard("s1")->leader = id_of('b');
  EXPECT_EQ(slots_checksum(other_leader), slots_checksum(sample_topology()));
  EXPECT_NE(slots_checksum(moved_slots()), slots_checksum(sample_topology()));
  EXPECT_EQ(slots_checksum(moved_slots()).size(), 16U);
}

TEST(SlotRecordTest, ChangedSlotsNeedARecord) {
  EXPECT_TRUE(SlotRecord{slots_checksum(moved_slots())}.check(moved_slots(), kKnown));
  for (const std::string& record : {std::string(), slots_checksum(sample_topology())}) {
    const auto checked = SlotRecord{record}.check(moved_slots(), kKnown);
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().message.find("without a record of a move"), std::string::npos);
  }
}

TEST(SlotRecordTest, KnownSlotsNeedNoRecord) {
  EXPECT_TRUE(SlotRecord{}.check(sample_topology(), kKnown));
  EXPECT_TRUE(SlotRecord{"another"}.check(sample_topology(), kKnown));
}

TEST(SlotRecordTest, FirstTopologyMustMatchAnExistingRecord) {
  EXPECT_TRUE(SlotRecord{}.check(sample_topology(), {})) << "a cluster of an older version";
  EXPECT_TRUE(SlotRecord{slots_checksum(sample_topology())}.check(sample_topology(), {}));
  EXPECT_FALSE(SlotRecord{slots_checksum(moved_slots())}.check(sample_topology(), {}));
}

}  // namespace
}  // namespace server::cluster
