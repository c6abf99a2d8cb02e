// SPDX-License-Identifier: MIT
#include "server/admin/history/history_sampler.h"

#include <sys/resource.h>

#include <algorithm>

#include "core/clock.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/tick_clock.h"
#include "server/commands/services.h"
#include "server/dispatch/registry.h"
#include "server/replication/leader/leader.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/replication.h"
#include "server/session/clients.h"

namespace server::admin {
namespace {

int64_t processor_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) { return time.tv_sec * core::kSecondUs + time.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// Returns the increase of a counter. If CONFIG RESETSTAT has reset the counter since `before`, the
// increase is its present value.
double growth(uint64_t now, uint64_t before) {
  return static_cast<double>(now >= before ? now - before : now);
}

}  // namespace

HistorySampler::HistorySampler(const Services& services)
    : services_(services),
      history_(services.registry.size()),
      calls_(services.registry.size()),
      interval_calls_(services.registry.size()),
      tallies_(services.registry.size()) {}

void HistorySampler::sample() {
  const Totals now = read_totals();
  Moment moment;
  moment.time_ms = services_.clock.wall_ms();
  const bool is_first = last_.time_us == 0;
  add_latencies(moment);
  if (!is_first && now.time_us > last_.time_us) {
    add_rates(now, moment);
    add_gauges(moment);
    add_replica_lag(moment);
    history_.add(moment);
  }
  last_ = now;
  // Commands that ran before the first sample are not counted in any interval.
  if (is_first || ++seconds_ == History::kSecondsPerInterval) finish_interval(moment.time_ms);
}

HistorySampler::Totals HistorySampler::read_totals() const {
  const Statistics& statistics = services_.statistics;
  return {services_.clock.monotonic_us(), statistics.total(&ThreadStatistics::commands_processed),
          statistics.total(&ThreadStatistics::input_bytes),
          statistics.total(&ThreadStatistics::output_bytes), processor_us()};
}

void HistorySampler::add_rates(const Totals& now, Moment& moment) const {
  const auto elapsed_us = static_cast<double>(now.time_us - last_.time_us);
  const double seconds = elapsed_us / core::kSecondUs;
  const auto rate = [&](uint64_t Totals::*total) {
    return static_cast<float>(growth(now.*total, last_.*total) / seconds);
  };
  moment[Figure::kOperations] = rate(&Totals::operations);
  moment[Figure::kInputBytes] = rate(&Totals::input_bytes);
  moment[Figure::kOutputBytes] = rate(&Totals::output_bytes);
  moment[Figure::kProcessors] =
      static_cast<float>(static_cast<double>(now.processor_us - last_.processor_us) / elapsed_us);
}

void HistorySampler::add_gauges(Moment& moment) const {
  moment[Figure::kUsedMemory] = static_cast<float>(services_.memory.measure().used());
  moment[Figure::kResidentMemory] = static_cast<float>(resident_memory().total_bytes);
  moment[Figure::kClients] = static_cast<float>(services_.clients.count());
}

void HistorySampler::add_replica_lag(Moment& moment) const {
  const uint64_t end = services_.replication.backlog().end_offset();
  for (const auto& replica : services_.leader.describe()) {
    const uint64_t behind = end - std::min(end, static_cast<uint64_t>(replica.acked));
    float& bytes = moment[Figure::kReplicaLagBytes];
    float& seconds = moment[Figure::kReplicaLagSeconds];
    bytes = std::max(bytes, static_cast<float>(behind));
    seconds = std::max(seconds, static_cast<float>(replica.lag_s));
  }
}

void HistorySampler::add_latencies(Moment& moment) {
  LatencyCounts all;
  for (size_t i = 0; i < tallies_.size(); ++i) {
    const uint64_t calls = services_.statistics.total(i, &CommandCounters::calls);
    if (calls == calls_[i]) continue;
    calls_[i] = calls;
    if (tallies_[i] == nullptr) tallies_[i] = std::make_unique<LatencyTally>();
    tallies_[i]->update(services_.statistics, i, all);
  }
  if (all.total() == 0) return;
  const auto time_us = [&](double percentage) {
    const double ticks = all.percentile(percentage);
    return static_cast<float>(ticks / services_.ticks.ticks_per_microsecond());
  };
  moment[Figure::kMedian] = time_us(50);
  moment[Figure::kPercentile99] = time_us(99);
  moment[Figure::kPercentile999] = time_us(99.9);
}

void HistorySampler::finish_interval(int64_t time_ms) {
  const double ticks_per_us = services_.ticks.ticks_per_microsecond();
  std::vector<CommandInterval> commands(tallies_.size());
  for (size_t i = 0; i < commands.size(); ++i) {
    commands[i].calls = static_cast<float>(growth(calls_[i], interval_calls_[i]));
    if (tallies_[i] == nullptr) continue;
    commands[i].percentile99_us =
        static_cast<float>(tallies_[i]->finish_interval(99) / ticks_per_us);
  }
  interval_calls_ = calls_;
  const bool is_whole = seconds_ == History::kSecondsPerInterval;
  if (is_whole) history_.add_interval(time_ms, std::move(commands));
  seconds_ = 0;
}

size_t HistorySampler::size_bytes() const {
  size_t bytes = history_.size_bytes() + sizeof(*this) +
                 tallies_.size() * (2 * sizeof(uint64_t) + sizeof(tallies_[0]));
  for (const auto& tally : tallies_) bytes += tally == nullptr ? 0 : sizeof(*tally);
  return bytes;
}

}  // namespace server::admin
