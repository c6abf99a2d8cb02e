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
using Labels = std::vector<ClientMetric::Label>;

void add_value(MetricFamily& family, Labels labels, uint64_t value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  const auto number = static_cast<double>(value);
  if (family.type == MetricType::Counter) {
    metric.counter.value = number;
  } else {
    metric.gauge.value = number;
  }
  family.metric.push_back(std::move(metric));
}

MetricFamily family(std::string name, std::string help, MetricType type) {
  MetricFamily made;
  made.name = std::move(name);
  made.help = std::move(help);
  made.type = type;
  return made;
}

}  // namespace

Families cluster_families(const cluster::View& view, const cluster::ClusterCounters& counters) {
  const cluster::Shard* const shard = view.own_shard();
  if (shard == nullptr || view.is_emulated()) return {};
  const ClientMetric::Label label{"shard", shard->name};
  Families families;
  const auto add = [&](std::string name, std::string help, MetricType type, uint64_t value) {
    families.push_back(family(std::move(name), std::move(help), type));
    add_value(families.back(), {label}, value);
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
  MetricFamily failovers = family("bloomery_cluster_failovers_total",
                                  "Failovers to this node by their cause", MetricType::Counter);
  for (size_t i = 0; i < cluster::kFailoverCauses.size(); ++i) {
    add_value(failovers, {label, {"cause", std::string(cluster::kFailoverCauses[i])}},
              counters.failovers[i]);
  }
  families.push_back(std::move(failovers));
  return families;
}

}  // namespace server::admin
