// SPDX-License-Identifier: MIT
//
// KeyExpiry: deletes expired keys in the background. A leader deletes all expired keys. A replica
// deletes only expired keys that its own clients wrote.
//
// A period lasts from one tick to the next. On a leader, the option active-expire-effort limits the
// time that expiry takes in each period. This time is divided into slices, and clients are served
// between two slices.
//
// Invariants: nothing is deleted while data are being loaded or writes are paused. Without expired
// keys, a tick costs a few microseconds.
// Thread safety: belongs to one thread. Its members lock stripes, so the caller must not hold the
// lock of a stripe.
// Source: Redis' activeExpireCycle(), which limits the processor time to the same percentages.
#pragma once

#include <cstdint>
#include <functional>

#include "core/clock.h"
#include "core/keyspace/expiry.h"
#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/base/metrics/gauges.h"
#include "server/base/process/server_state.h"
#include "server/dispatch/pause_gate.h"
#include "server/replication/stream/own_expiries.h"

namespace server {

class KeyExpiry {
 public:
  struct Parts {
    const Config& config;
    const core::Clock& clock;
    core::keyspace::Keyspace& keyspace;
    const ServerState& state;
    const PauseGate& pause;
    OwnExpiries& own_expiries;
    Gauges& gauges;
    // Schedules a task on the thread that calls tick(), so that the thread can do other work first.
    std::function<void(std::function<void()>)> post;
  };
  explicit KeyExpiry(const Parts& parts) : parts_(parts), expiry_(parts.keyspace, parts.clock) {}

  // Starts a period of active expiry. Must be called `hz` times a second.
  void tick();

 private:
  bool may_expire() const;
  // Deletes expired keys for one time slice. Posts the next slice if expired keys remain and the
  // period has time left.
  void run_slice();
  void expire_own();
  // Updates the estimated share of expired keys (stale_ratio) from the counts of the period that
  // ends. Then counts the keys with an expiry for the next period.
  void end_period();

  const Parts parts_;
  core::keyspace::ActiveExpiry expiry_;
  int64_t left_us_ = 0;    // time that expiry may still use in this period
  uint64_t expiring_ = 0;  // number of keys with an expiry when this period began
  uint64_t expired_ = 0;   // number of keys deleted in this period
  bool is_posted_ = false;
};

}  // namespace server
