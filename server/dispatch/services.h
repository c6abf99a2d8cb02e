// SPDX-License-Identifier: MIT
//
// Services: what command handlers may use of the process, by reference.
//
// Built once by Server, which owns all of it. No logic lives here.
// Thread safety: each member says its own.
#pragma once

#include <cstdint>
#include <string>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/reclaimer.h"
#include "persistence/journal.h"
#include "server/config/config.h"
#include "server/dispatch/pause_gate.h"
#include "server/dispatch/registry.h"
#include "server/durability/durability.h"
#include "server/process/memory_monitor.h"
#include "server/process/statistics.h"
#include "server/process/tick_clock.h"
#include "server/pubsub/pub_sub.h"
#include "server/replication/roles/follower.h"
#include "server/replication/roles/shutdown.h"
#include "server/replication/stream/replication.h"
#include "server/session/clients.h"

namespace server {

// Facts that do not change while the process runs.
struct ProcessFacts {
  std::string run_id;  // 40 hexadecimal digits, new at every start
  std::string executable;
  int64_t started_ms = 0;
  size_t io_thread_count = 1;
  std::string config_file;  // empty when there is none
};

// Figures that the periodic tasks keep for INFO.
struct Gauges {
  std::atomic<uint64_t> operations_per_second{0};
  std::atomic<uint64_t> input_bytes_per_second{0};
  std::atomic<uint64_t> output_bytes_per_second{0};
  std::atomic<uint64_t> clients_peak{0};
  std::atomic<uint64_t> expire_cycle_us{0};

  // CONFIG RESETSTAT: all but the peak, which Redis keeps too.
  void reset() {
    for (auto* gauge : {&operations_per_second, &input_bytes_per_second, &output_bytes_per_second,
                        &expire_cycle_us}) {
      gauge->store(0);
    }
  }
};

struct Services {
  Config& config;
  const core::Clock& clock;
  const TickClock& ticks;
  core::keyspace::Keyspace& keyspace;
  core::keyspace::Reclaimer& reclaimer;
  persistence::Journal& journal;
  Durability& durability;
  Replication& replication;
  Follower& follower;
  const Registry& registry;
  Clients& clients;
  PubSub& pubsub;
  Statistics& statistics;
  MemoryMonitor& memory;
  PauseGate& pause;
  Gauges& gauges;
  const ProcessFacts& facts;
  // Effective changes since the start; INFO's rdb_changes_since_last_save.
  std::atomic<uint64_t>& changes;
  Shutdown& shutdown;
};

}  // namespace server
