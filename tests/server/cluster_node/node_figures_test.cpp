// SPDX-License-Identifier: MIT
#include "server/cluster_node/node_figures.h"

#include <gtest/gtest.h>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

class NodeFiguresTest : public ::testing::Test {
 protected:
  static TopologyVersion led_by(char digit, uint64_t revision) {
    TopologyVersion version{sample_topology(), revision};
    version.topology.shard("s1")->leader = id_of(digit);
    return version;
  }
  uint64_t count(FailoverCause cause) const {
    return counters_.failovers[static_cast<size_t>(cause)];
  }

  ClusterCounters counters_;
  NodeFigures figures_{counters_, id_of('b')};
};

TEST_F(NodeFiguresTest, FailoversAreCountedByCause) {
  figures_.on_topology(led_by('a', 5), led_by('b', 6));
  EXPECT_EQ(count(FailoverCause::kHandover), 1U);
  figures_.on_topology(led_by('b', 6), led_by('a', 7));
  figures_.on_request({1, 7, led_by('b', 0).topology, id_of('a'), true});
  figures_.on_topology(led_by('a', 7), led_by('b', 8));
  EXPECT_EQ(count(FailoverCause::kLostLeader), 1U);
  figures_.on_request({2, 9, led_by('b', 0).topology, "", true});
  figures_.on_topology(led_by('a', 9), led_by('b', 10));
  EXPECT_EQ(count(FailoverCause::kForced), 1U);
  EXPECT_EQ(count(FailoverCause::kHandover), 1U);
}

TEST_F(NodeFiguresTest, OtherChangesAreNoFailovers) {
  figures_.on_topology({}, led_by('b', 6));
  figures_.on_topology(led_by('b', 6), led_by('b', 7));
  figures_.on_topology(led_by('b', 7), led_by('a', 8));
  for (const auto& failovers : counters_.failovers) EXPECT_EQ(failovers, 0U);
}

}  // namespace
}  // namespace server::cluster
