// SPDX-License-Identifier: MIT
//
// HistorySampler: reads the server's counters once a second and adds the rates to a History.
//
// Invariants: even if all commands are used, the sampler and its history take less than kBytesMax
// of memory.
// Thread safety: none. sample() takes no lock of a stripe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/admin/history/history.h"
#include "server/admin/history/latency_tally.h"

namespace server {
struct Services;
}

namespace server::admin {

class HistorySampler {
 public:
  static constexpr size_t kBytesMax = size_t{4} << 20;

  explicit HistorySampler(const Services& services);
  HistorySampler(const HistorySampler&) = delete;
  HistorySampler& operator=(const HistorySampler&) = delete;

  // Adds a sample to the history. Must be called about once a second. The first call only stores
  // the counters.
  void sample();
  const History& history() const { return history_; }
  size_t size_bytes() const;

 private:
  struct Totals {
    int64_t time_us = 0;  // monotonic time of the last sample; 0 before the first sample
    uint64_t operations = 0;
    uint64_t input_bytes = 0;
    uint64_t output_bytes = 0;
    int64_t processor_us = 0;
  };
  Totals read_totals() const;
  void add_rates(const Totals& now, Moment& moment) const;
  void add_gauges(Moment& moment) const;
  void add_replica_lag(Moment& moment) const;
  void add_latencies(Moment& moment);
  void finish_interval(int64_t time_ms);

  const Services& services_;
  History history_;
  Totals last_;
  // The number of seconds since the start of the current interval.
  size_t seconds_ = 0;
  std::vector<uint64_t> calls_;  // number of calls of each command at the last sample

  // The number of calls of each command at the start of the current interval.
  std::vector<uint64_t> interval_calls_;
  // The latencies of each command; null if the command never ran.
  std::vector<std::unique_ptr<LatencyTally>> tallies_;
};

}  // namespace server::admin
