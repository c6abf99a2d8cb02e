// SPDX-License-Identifier: MIT
//
// LatencyMonitor: records events that took at least latency-monitor-threshold, by kind: "command",
// "fork", "expire-cycle". LATENCY shows them.
//
// Invariants: each kind of event has at most 160 samples. A sample is the slowest event of one
// second.
// Thread safety: all members may be called from any thread.
// Source: Redis 7.0.15, LATENCY HISTORY.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace server {

struct LatencySample {
  int64_t time_s = 0;
  int64_t duration_ms = 0;
};

// The recorded events of one kind, such as "fork".
struct LatencyEvents {
  static constexpr size_t kSamplesMax = 160;

  // The slowest event of each second, the oldest first; never empty.
  std::deque<LatencySample> samples;
  int64_t longest_ms = 0;  // duration of the longest event since the last reset
};

class LatencyMonitor {
 public:
  using ByKind = std::map<std::string, LatencyEvents, std::less<>>;

  // Sets the minimum duration of the events that are recorded. 0 switches the monitor off.
  void set_threshold_ms(int64_t threshold_ms) {
    threshold_ms_.store(threshold_ms, std::memory_order_relaxed);
  }
  int64_t threshold_ms() const { return threshold_ms_.load(std::memory_order_relaxed); }
  // Must be called for every event. The call is cheap if the event was fast.
  void record(std::string_view kind, int64_t duration_ms, int64_t now_s) {
    const int64_t threshold = threshold_ms();
    if (threshold > 0 && duration_ms >= threshold) add(kind, duration_ms, now_s);
  }

  ByKind events() const;
  // These functions delete the events of one kind, or of all kinds. They return how many kinds had
  // events.
  size_t reset(std::string_view kind);
  size_t reset_all();

 private:
  void add(std::string_view kind, int64_t duration_ms, int64_t now_s);

  std::atomic<int64_t> threshold_ms_{0};
  mutable std::mutex mutex_;  // this mutex guards events_
  ByKind events_;
};

}  // namespace server
