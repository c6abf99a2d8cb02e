// SPDX-License-Identifier: MIT
//
// Writes the counters and latencies of each command as metrics.
//
// Invariants: only commands that were called, rejected or failed are listed. A histogram's counts
// never fall from one bucket to the next.
// Thread safety: any thread may call the functions, because Statistics' counters may be read from
// any thread.
// Source: the names of prometheus-redis-exporter.
#pragma once

#include <array>

#include "server/admin/figures/info_metrics.h"

namespace server {
struct Services;

}

namespace server::admin {

// The upper bounds of the latency histograms' buckets, in microseconds.
inline constexpr std::array<double, 19> kLatencyBoundsUs = {
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6};

Families command_families(const Services& services);

}  // namespace server::admin
