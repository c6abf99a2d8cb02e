// SPDX-License-Identifier: MIT
//
// Supervisor: notifies the service manager of the server's state, according to the option
// `supervised`.
//
// Invariants: without a service manager nothing is sent. READY=1 is sent at most once, and never
// after STOPPING=1. While data are loading, the manager's startup timeout is extended.
// Thread safety: one thread calls tick(). Any thread may call the other members.
// Source: sd_notify(3), sd_watchdog_enabled(3).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/base/config/config.h"

namespace server {

class Supervisor {
 public:
  // Sends lines "NAME=value" to the service manager. Tests replace the function.
  using Send = std::function<void(const std::string& lines)>;

  // With kAuto, the environment selects the mode. `watchdog_us` is the interval of watchdog
  // messages that the service manager requests; 0 for none.
  explicit Supervisor(Supervised mode);
  Supervisor(bool listens, uint64_t watchdog_us, Send send);

  void ready(std::string_view what);
  void stopping();
  // Sends the messages that are due. Must be called several times a second. `now_us` is monotonic.
  // `loaded_share` is the loaded fraction of the data, 0 to 1; negative while nothing is loading.
  void tick(int64_t now_us, double loaded_share);

 private:
  const bool listens_;
  const int64_t watchdog_us_;
  const Send send_;
  std::atomic<bool> is_ready_{false};
  std::atomic<bool> is_stopping_{false};
  int64_t sign_of_life_us_ = 0;
  int64_t loading_reported_us_ = 0;
};

}  // namespace server
