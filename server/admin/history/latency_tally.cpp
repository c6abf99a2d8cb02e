// SPDX-License-Identifier: MIT
#include "server/admin/history/latency_tally.h"

#include "server/base/metrics/statistics.h"

namespace server::admin {

void LatencyTally::update(const Statistics& statistics, size_t command_index, LatencyCounts& all) {
  Counts now{};
  for (size_t i = 0; i < statistics.thread_count(); ++i) {
    const auto& counters = statistics.thread(i).commands[command_index];
    const LatencyHistogram* const histogram = counters.latencies.load();
    if (histogram == nullptr) continue;
    for (size_t bucket = 0; bucket < now.size(); ++bucket) {
      now[bucket] += static_cast<uint32_t>(histogram->count(bucket));
    }
  }
  for (size_t bucket = 0; bucket < now.size(); ++bucket) {
    const uint32_t before = seen_[bucket];
    if (now[bucket] == before) continue;
    const uint32_t grown = now[bucket] > before ? now[bucket] - before : now[bucket];
    interval_[bucket] += grown;
    if (grown != 0) all.add(bucket, grown);
  }
  seen_ = now;
}

double LatencyTally::finish_interval(double percentage) {
  LatencyCounts counts;
  for (size_t bucket = 0; bucket < interval_.size(); ++bucket) {
    if (interval_[bucket] != 0) counts.add(bucket, interval_[bucket]);
  }
  interval_.fill(0);
  return counts.total() == 0 ? 0 : counts.percentile(percentage);
}

}  // namespace server::admin
