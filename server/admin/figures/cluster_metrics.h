// SPDX-License-Identifier: MIT
//
// Metrics of a node about its shard: members, how far they are behind, failovers, lapses of the
// permit.
//
// Invariants: each metric has the label `shard`; a leader alone reports how far members are behind.
// Thread safety: pure function.
#pragma once

#include "server/admin/figures/info_metrics.h"

namespace server::cluster {
struct ClusterCounters;
class View;
}  // namespace server::cluster

namespace server::admin {

Families cluster_families(const cluster::View& view, const cluster::ClusterCounters& counters);

}  // namespace server::admin
