// SPDX-License-Identifier: MIT
#include "server/base/latency/latency_monitor.h"

#include <algorithm>
#include <string>
#include <utility>

namespace server {

void LatencyMonitor::add(std::string_view kind, int64_t duration_ms, int64_t now_s) {
  const std::scoped_lock lock(mutex_);
  LatencyEvents& events = events_[std::string(kind)];
  events.longest_ms = std::max(events.longest_ms, duration_ms);
  if (!events.samples.empty() && events.samples.back().time_s == now_s) {
    int64_t& slowest = events.samples.back().duration_ms;
    slowest = std::max(slowest, duration_ms);
    return;
  }
  events.samples.push_back({now_s, duration_ms});
  if (events.samples.size() > LatencyEvents::kSamplesMax) events.samples.pop_front();
}

LatencyMonitor::ByKind LatencyMonitor::events() const {
  const std::scoped_lock lock(mutex_);
  return events_;
}

size_t LatencyMonitor::reset(std::string_view kind) {
  const std::scoped_lock lock(mutex_);
  return events_.erase(std::string(kind));
}

size_t LatencyMonitor::reset_all() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(events_, {}).size();
}

}  // namespace server
