// SPDX-License-Identifier: MIT
//
// LatencyTally: the latencies of one command since the last update, computed from histograms that
// grow until CONFIG RESETSTAT clears them.
//
// Invariants: a count that is lower than at the last update was reset since then. So all calls that
// it counts are new.
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>

#include "server/base/latency/latency_histogram.h"

namespace server {
class Statistics;
}

namespace server::admin {

class LatencyTally {
 public:
  // Adds the command's calls since the last update to the current interval, and to `all`, the sum
  // over all commands.
  void update(const Statistics& statistics, size_t command_index, LatencyCounts& all);
  // Returns the interval's percentile in ticks; 0 if the interval has no calls. Then begins the
  // next interval.
  double finish_interval(double percentage);

 private:
  using Counts = std::array<uint32_t, LatencyHistogram::kBucketCount>;
  Counts seen_{};      // the histograms' counts at the last update, modulo 2^32
  Counts interval_{};  // the histograms' counts since the interval began
};

}  // namespace server::admin
