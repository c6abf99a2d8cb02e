// SPDX-License-Identifier: MIT
//
// Periodic: runs a task several times a second on I/O thread 0. Once a second it closes idle
// clients, and clients over their output limit, on all I/O threads.
//
// Thread safety: belongs to I/O thread 0.
#pragma once

#include <functional>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/net/io_threads.h"

namespace server::net {

class Periodic {
 public:
  // `task` must be short, because clients wait while it runs.
  Periodic(IoThreads& threads, const Config& config, const core::Clock& clock,
           std::function<void()> task);

  // Calls `task` from now on, `hz` times a second.
  void start();
  void stop();

 private:
  void await();
  // Called once a second. Closes clients that are idle or over their output limit.
  void check_clients();

  IoThreads& threads_;
  const Config& config_;
  const core::Clock& clock_;
  const std::function<void()> task_;
  Timer timer_;
  bool stopped_ = false;
  uint64_t ticks_ = 0;
  int64_t client_checks_ = 0;
};

}  // namespace server::net
