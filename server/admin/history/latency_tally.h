// SPDX-License-Identifier: MIT
//
// LatencyTally: the latencies of one command since the last look, from histograms that only grow.
//
// Invariants: after CONFIG RESETSTAT counts are smaller than before; they are then taken as new.
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>

#include "server/latency/latency_histogram.h"

namespace server {
class Statistics;
}

namespace server::admin {

class LatencyTally {
 public:
  // Adds the calls since the last update to the current interval and to `all`.
  void update(const Statistics& statistics, size_t command_index, LatencyCounts& all);
  // The interval's percentile in ticks, 0 without calls; begins the next interval.
  double finish_interval(double percentage);

 private:
  using Counts = std::array<uint32_t, LatencyHistogram::kBucketCount>;
  Counts seen_{};      // of the histograms, modulo 2^32
  Counts interval_{};  // since the interval began
};

}  // namespace server::admin
