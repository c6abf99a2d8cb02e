// SPDX-License-Identifier: MIT
#include "server/admin/figures/command_metrics.h"

#include "core/number.h"
#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/base/latency/latency_histogram.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/tick_clock.h"
#include "server/commands/services.h"
#include "server/dispatch/registry.h"

namespace server::admin {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct CommandFamilies {
  MetricFamily calls{"redis_commands_total", "Calls", MetricType::Counter, {}};
  MetricFamily seconds{
      "redis_commands_duration_seconds_total", "Time they took", MetricType::Counter, {}};
  MetricFamily rejected{
      "redis_commands_rejected_calls_total", "Refused before they ran", MetricType::Counter, {}};
  MetricFamily failed{
      "redis_commands_failed_calls_total", "Ended with an error", MetricType::Counter, {}};
  MetricFamily histogram{
      "redis_commands_latencies_usec", "How long calls took", MetricType::Histogram, {}};
  MetricFamily percentiles{
      "redis_latency_percentiles_usec", "How long calls took", MetricType::Summary, {}};
};

struct Times {
  const LatencyCounts& counts;
  double total_us;
  double ticks_per_us;
};

void add_histogram(MetricFamily& family, const std::string& command, const Times& times) {
  ClientMetric metric;
  metric.label = {{"cmd", command}};
  metric.histogram.sample_sum = times.total_us;
  for (const double bound_us : kLatencyBoundsUs) {
    metric.histogram.bucket.push_back(
        {times.counts.count_up_to(bound_us * times.ticks_per_us), bound_us});
  }
  metric.histogram.sample_count = times.counts.total();
  family.metric.push_back(std::move(metric));
}

void add_percentiles(MetricFamily& family, const std::string& command, const Times& times,
                     const std::vector<std::string>& percentages) {
  ClientMetric metric;
  metric.label = {{"cmd", command}};
  metric.summary.sample_sum = times.total_us;
  metric.summary.sample_count = times.counts.total();
  for (const std::string& word : percentages) {
    const double percentage = core::parse_double(word).value_or(0);
    metric.summary.quantile.push_back(
        {percentage, times.counts.percentile(percentage) / times.ticks_per_us});
  }
  family.metric.push_back(std::move(metric));
}

}  // namespace

Families command_families(const Services& services) {
  CommandFamilies all;
  const Config& config = services.config;
  const auto words = split_at_spaces(config.text(OptionId::kLatencyTrackingInfoPercentiles));
  const std::vector<std::string> percentages(words.begin(), words.end());
  const double ticks_per_us = services.ticks.ticks_per_microsecond();
  for (size_t i = 0; i < services.registry.size(); ++i) {
    const auto total = [&](Counter CommandCounters::*counter) {
      return services.statistics.total(i, counter);
    };
    const uint64_t calls = total(&CommandCounters::calls);
    const uint64_t rejected = total(&CommandCounters::rejected);
    const uint64_t failed = total(&CommandCounters::failed);
    if (calls == 0 && rejected == 0 && failed == 0) continue;
    const std::string& name = services.registry.at(i).full_name;
    const double total_us = static_cast<double>(total(&CommandCounters::ticks)) / ticks_per_us;
    add_value(all.calls, static_cast<double>(calls), {{"cmd", name}});
    add_value(all.seconds, total_us / 1e6, {{"cmd", name}});
    add_value(all.rejected, static_cast<double>(rejected), {{"cmd", name}});
    add_value(all.failed, static_cast<double>(failed), {{"cmd", name}});
    const LatencyCounts counts = services.statistics.latencies(i);
    if (counts.total() == 0) continue;
    const Times times{counts, total_us, ticks_per_us};
    add_histogram(all.histogram, name, times);
    add_percentiles(all.percentiles, name, times, percentages);
  }
  Families families;
  for (MetricFamily* family :
       {&all.calls, &all.seconds, &all.rejected, &all.failed, &all.histogram, &all.percentiles}) {
    if (!family->metric.empty()) families.push_back(std::move(*family));
  }
  return families;
}

}  // namespace server::admin
