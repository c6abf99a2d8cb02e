// SPDX-License-Identifier: MIT
//
// Writes the section latencystats of INFO: the duration of each command.
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
