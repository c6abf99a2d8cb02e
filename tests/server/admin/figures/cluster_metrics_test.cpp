// SPDX-License-Identifier: MIT
#include "server/admin/figures/cluster_metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <string>

#include "server/cluster/cluster_counters.h"
#include "server/cluster/view.h"
#include "tests/server/cluster/sample_topology.h"

namespace server::admin {
namespace {

using cluster::id_of;

std::string text_of(const cluster::View& view, const cluster::ClusterCounters& counters) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, cluster_families(view, counters));
  return std::move(text).str();
}

TEST(ClusterMetricsTest, LeaderReportsItsShard) {
  cluster::ClusterCounters counters;
  counters.bytes_behind = 77;
  counters.permit_lapses = 2;
  counters.count(cluster::FailoverCause::kLostLeader);
  const cluster::View view(id_of('a'), {cluster::sample_topology(), 9}, {});
  const std::string text = text_of(view, counters);
  for (const std::string line :
       {R"(bloomery_cluster_shard_members{shard="s1"} 2)",
        R"(bloomery_cluster_shard_members_in_sync{shard="s1"} 2)",
        R"(bloomery_cluster_shard_bytes_behind{shard="s1"} 77)",
        R"(bloomery_cluster_permit_lapses_total{shard="s1"} 2)",
        R"(bloomery_cluster_failovers_total{shard="s1",cause="handover"} 0)",
        R"(bloomery_cluster_failovers_total{shard="s1",cause="lost_leader"} 1)"}) {
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << "\n" << text;
  }
}

TEST(ClusterMetricsTest, ReplicaDoesNotKnowHowFarOthersAre) {
  const cluster::View view(id_of('b'), {cluster::sample_topology(), 9}, {});
  EXPECT_EQ(text_of(view, {}).find("bytes_behind"), std::string::npos);
}

TEST(ClusterMetricsTest, NothingOutsideATopology) {
  EXPECT_EQ(text_of(cluster::View(id_of('f')), {}), "");
  EXPECT_EQ(text_of(*cluster::View::emulated(id_of('f')), {}), "");
}

}  // namespace
}  // namespace server::admin
