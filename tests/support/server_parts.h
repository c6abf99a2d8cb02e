// SPDX-License-Identifier: MIT
//
// Includes the headers of all parts of a server, for tests that compose a server.
//
// Thread safety: belongs to one thread.
#pragma once

#include "core/keyspace/keyspace.h"
#include "core/keyspace/reclaimer.h"
#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/metrics/gauges.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/process_facts.h"
#include "server/base/process/server_state.h"
#include "server/base/process/tick_clock.h"
#include "server/cluster/cluster_state.h"
#include "server/commands/services.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/pause_gate.h"
#include "server/dispatch/permissions.h"
#include "server/dispatch/registry.h"
#include "server/durability/durability.h"
#include "server/durability/durability_parts.h"
#include "server/replication/leader/leader.h"
#include "server/replication/replica_controller.h"
#include "server/replication/shutdown.h"
#include "server/replication/stream/replication.h"
#include "server/session/acl/command_table.h"
#include "server/session/acl/users.h"
#include "server/session/clients.h"
#include "server/session/observer.h"
#include "server/session/pubsub/key_events.h"
#include "server/session/pubsub/tracking.h"
#include "server/session/session.h"
#include "tests/support/test_threads.h"
#include "tests/support/virtual_disk.h"

namespace server {

// Simulates the server process: ignores acknowledgements of replicas, and counts the requests to
// end the process.
struct Surroundings final : AckListener, Shutdown::Process {
  void on_ack() override {}
  void end() override { ++ends; }
  int ends = 0;
};

}  // namespace server
