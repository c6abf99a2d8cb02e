// SPDX-License-Identifier: MIT
#include "server/admin/figures/overview.h"

#include <array>
#include <boost/json/array.hpp>

#include "core/clock.h"
#include "server/admin/figures/command_metrics.h"
#include "server/admin/figures/metrics_page.h"
#include "server/admin/figures/readable.h"
#include "server/admin/figures/readiness.h"
#include "server/base/latency/latency_histogram.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/tick_clock.h"
#include "server/commands/services.h"
#include "server/dispatch/registry.h"

namespace server::admin {
namespace {

boost::json::object latencies_of(const Services& services) {
  std::array<uint64_t, kLatencyBoundsUs.size()> sums{};
  uint64_t total = 0;
  const double ticks_per_us = services.ticks.ticks_per_microsecond();
  for (size_t i = 0; i < services.registry.size(); ++i) {
    const LatencyCounts counts = services.statistics.latencies(i);
    const uint64_t calls = counts.total();
    if (calls == 0) continue;
    total += calls;
    for (size_t bound = 0; bound < sums.size(); ++bound) {
      sums[bound] += counts.count_up_to(kLatencyBoundsUs[bound] * ticks_per_us);
    }
  }
  return {{"bounds_us", boost::json::array(kLatencyBoundsUs.begin(), kLatencyBoundsUs.end())},
          {"counts", boost::json::array(sums.begin(), sums.end())},
          {"total", total}};
}

}  // namespace

boost::json::object overview_of(Services& services) {
  boost::json::object info;
  for (const auto& [name, value] : read_info(services)) info[readable(name)] = readable(value);
  return {{"info", std::move(info)},
          {"latency", latencies_of(services)},
          {"time_us", services.clock.monotonic_us()},
          {"unready", unready_cause(services)}};
}

}  // namespace server::admin
