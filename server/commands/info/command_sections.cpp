// SPDX-License-Identifier: MIT
//
// Writes the sections of INFO about commands: commandstats, errorstats and latencystats.
#include <string>

#include "core/number.h"
#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/base/latency/latency_histogram.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/tick_clock.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"
#include "server/dispatch/registry.h"

namespace server::info {

void write_commandstats(const Source& source, Lines& lines) {
  const Services& services = source.services;
  for (size_t i = 0; i < services.registry.size(); ++i) {
    const auto total = [&](Counter CommandCounters::*counter) {
      return services.statistics.total(i, counter);
    };
    const uint64_t calls = total(&CommandCounters::calls);
    const uint64_t rejected = total(&CommandCounters::rejected);
    const uint64_t failed = total(&CommandCounters::failed);
    if (calls == 0 && rejected == 0 && failed == 0) continue;
    const double total_us = services.ticks.microseconds(total(&CommandCounters::ticks));
    lines.field(
        fmt::format("cmdstat_{}", services.registry.at(i).full_name),
        fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                    calls, static_cast<uint64_t>(total_us),
                    calls == 0 ? 0.0 : total_us / static_cast<double>(calls), rejected, failed));
  }
}

void write_errorstats(const Source& source, Lines& lines) {
  for (const auto& [code, count] : source.services.statistics.errors()) {
    lines.field(fmt::format("errorstat_{}", code), fmt::format("count={}", count));
  }
}

void write_latencystats(const Source& source, Lines& lines) {
  const Services& services = source.services;
  if (!services.config.flag(OptionId::kLatencyTracking)) return;
  const std::string percentiles = services.config.text(OptionId::kLatencyTrackingInfoPercentiles);
  const double ticks_per_us = services.ticks.ticks_per_microsecond();
  for (size_t i = 0; i < services.registry.size(); ++i) {
    const LatencyCounts counts = services.statistics.latencies(i);
    if (counts.total() == 0) continue;
    std::string shown;
    for (const std::string& word : split_at_spaces(percentiles)) {
      const double ticks = counts.percentile(core::parse_double(word).value_or(0));
      shown += fmt::format("{}p{}={:.3f}", shown.empty() ? "" : ",", word, ticks / ticks_per_us);
    }
    lines.field(fmt::format("latency_percentiles_usec_{}", services.registry.at(i).full_name),
                shown);
  }
}

}  // namespace server::info
