// SPDX-License-Identifier: MIT
//
// Writes a node's metrics about its shard: its members, the members in sync, and the bytes that the
// slowest connected member lacks. Also writes the number of failovers, and how often the permit to
// serve writes ended early.
//
// Invariants: each metric has the label `shard`; only a leader reports the missing bytes.
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
