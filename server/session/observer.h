// SPDX-License-Identifier: MIT
//
// Observer: reports finished commands to SLOWLOG, LATENCY and MONITOR.
//
// For a command that is not reported, the only cost is comparing its ticks with ticks_min(), which
// is 0 while there are monitors.
//
// Invariants: secrets reach neither the slow log nor monitors.
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>

#include "server/base/latency/latency_monitor.h"
#include "server/base/latency/slow_log.h"
#include "server/session/pubsub/monitor_feed.h"

namespace core {
class Clock;
}

namespace server {

class BigArgument;
class Config;
class Session;
class TickClock;

// The arguments and the duration of a command that has ended.
struct Observed {
  // Points to a function that returns whether the word at `index` is a secret. Null if the command
  // has no secret arguments.
  using Hides = bool (*)(std::span<const std::string_view> words, size_t index);

  const Session& session;
  std::span<const std::string_view> words;
  uint64_t ticks;
  // The argument that was received into a separate buffer because it is big; null if the command
  // has no such argument.
  const BigArgument* big_argument = nullptr;
  Hides hides = nullptr;
  bool is_fast = false;
  bool is_in_slow_log = true;
  bool is_monitored = true;
};

class Observer {
 public:
  // `wake` is called with the index of each thread that must deliver lines to its monitors.
  Observer(const Config& config, const core::Clock& clock, const TickClock& ticks,
           size_t thread_count, std::function<void(size_t)> wake);

  // Returns the number of ticks below which a command is not reported.
  uint64_t ticks_min() const { return ticks_min_.load(std::memory_order_relaxed); }
  void observe(const Observed& observed);
  // Recomputes ticks_min(). Must be called after a change of the options or of the monitors, and
  // regularly, because the measured tick rate becomes more exact over time.
  void update();
  // Records a LATENCY event that is no command, such as a fork.
  void record_event(std::string_view kind, int64_t duration_ms);

  // start_monitor() and stop_monitor() start and stop MONITOR for a session. REQUIRES: the caller
  // is the session's thread, and the session belongs to a client.
  void start_monitor(Session& session);
  void stop_monitor(Session& session);

  SlowLog& slow_log() { return slow_log_; }
  LatencyMonitor& latency() { return latency_; }
  MonitorFeed& monitors() { return monitors_; }

 private:
  const Config& config_;
  const core::Clock& clock_;
  const TickClock& ticks_;
  SlowLog slow_log_;
  LatencyMonitor latency_;
  MonitorFeed monitors_;
  // This mutex is held during update(), which reads options and monitors that other threads change.
  std::mutex update_mutex_;
  std::atomic<uint64_t> ticks_min_{0};
};

}  // namespace server
