// SPDX-License-Identifier: MIT
//
// Returns the texts of LATENCY GRAPH and LATENCY DOCTOR.
//
// Thread-safe: the functions keep no state.
// Source: Redis 7.0.15; the graph is drawn as in Redis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/base/latency/latency_monitor.h"

namespace server {

// Returns a graph with one column for each sample, the oldest on the left. The sample's age is
// below its column.
std::string latency_graph(std::string_view kind, const LatencyEvents& events, int64_t now_s);

struct LatencySettings {
  int64_t threshold_ms = 0;     // value of latency-monitor-threshold
  int64_t slowlog_slow_us = 0;  // value of slowlog-log-slower-than
};
// Returns a summary of the events, and advice for each kind.
std::string latency_diagnosis(const LatencyMonitor::ByKind& events,
                              const LatencySettings& settings);

}  // namespace server
