// SPDX-License-Identifier: MIT
//
// Periodic: what the server does by the clock: active expiry, gauges, clients that are
// idle or do not read.
//
// Invariants: a tick is bounded (see ExpiryBudget), so that it delays no client for long.
// Thread safety: belongs to I/O thread 0.
#pragma once

#include "core/clock.h"
#include "core/keyspace/expiry.h"
#include "core/keyspace/keyspace.h"
#include "server/commands/services.h"
#include "server/net/io_threads.h"

namespace server::net {

class Periodic {
 public:
  Periodic(IoThreads& threads, Services& services)
      : threads_(threads),
        services_(services),
        expiry_(services.keyspace, services.clock),
        timer_(threads.at(0).context) {}

  void start();
  void stop();

 private:
  Awaitable<> run();
  void tick();
  void expire_keys();
  void expire_own_keys();
  void sample_rates();
  void check_clients();

  IoThreads& threads_;
  Services& services_;
  core::keyspace::ActiveExpiry expiry_;
  Timer timer_;
  bool stopped_ = false;
  uint64_t ticks_ = 0;
  int64_t client_checks_ = 0;
  int64_t sampled_us_ = 0;
  uint64_t sampled_commands_ = 0;
  uint64_t sampled_input_ = 0;
  uint64_t sampled_output_ = 0;
};

}  // namespace server::net
