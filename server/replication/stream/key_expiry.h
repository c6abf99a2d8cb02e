// SPDX-License-Identifier: MIT
//
// KeyExpiry: deletes expired keys in the background: all of them on a leader, on a replica only
// keys that its leader does not know.
//
// Invariants: a tick is bounded, so that it delays no client for long; none deletes while data are
// being loaded or writes are paused.
// Thread safety: one thread. It takes stripe locks: call it with none held.
// Source: Redis' activeExpireCycle(), of which it is the slow one.
#pragma once

#include "core/clock.h"
#include "core/keyspace/expiry.h"
#include "core/keyspace/keyspace.h"
#include "server/config/config.h"
#include "server/dispatch/pause_gate.h"
#include "server/process/gauges.h"
#include "server/process/server_state.h"
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
  };
  explicit KeyExpiry(const Parts& parts) : parts_(parts), expiry_(parts.keyspace, parts.clock) {}

  // To be called `hz` times a second.
  void tick();

 private:
  void expire_all();
  void expire_own();

  const Parts parts_;
  core::keyspace::ActiveExpiry expiry_;
};

}  // namespace server
