// SPDX-License-Identifier: MIT
#include "server/admin/figures/cluster_metrics.h"

#include <string>
#include <utility>

#include "server/cluster/cluster_counters.h"
#include "server/cluster/view.h"

namespace server::admin {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

}  // namespace

Families cluster_families(const cluster::View& view, const cluster::ClusterCounters& counters) {
  const cluster::Shard* const shard = view.own_shard();
  if (shard == nullptr || view.is_emulated()) return {};
  const ClientMetric::Label label{"shard", shard->name};
  Families families;
  const auto add = [&](std::string name, std::string help, MetricType type, uint64_t value) {
    families.push_back(
        family_of(std::move(name), std::move(help), type, static_cast<double>(value), {label}));
  };
  add("bloomery_cluster_shard_members", "Members of this node's shard", MetricType::Gauge,
      shard->members.size());
  add("bloomery_cluster_shard_members_in_sync", "Members that may lead it", MetricType::Gauge,
      shard->insync.size());
  if (view.leads()) {
    add("bloomery_cluster_shard_bytes_behind", "Bytes that the slowest connected member lacks",
        MetricType::Gauge, counters.bytes_behind);
  }
  add("bloomery_cluster_permit_lapses_total", "Permits of this leader that ended too early",
      MetricType::Counter, counters.permit_lapses);
  MetricFamily failovers{"bloomery_cluster_failovers_total",
                         "Failovers to this node by their cause",
                         MetricType::Counter,
                         {}};
  for (size_t i = 0; i < cluster::kFailoverCauses.size(); ++i) {
    add_value(failovers, static_cast<double>(counters.failovers[i]),
              {label, {"cause", std::string(cluster::kFailoverCauses[i])}});
  }
  families.push_back(std::move(failovers));
  return families;
}

}  // namespace server::admin
