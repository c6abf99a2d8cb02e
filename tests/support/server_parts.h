// SPDX-License-Identifier: MIT
//
// Includes the headers of all parts of a server, for tests that compose a server.
//
// Thread safety: belongs to one thread.
#pragma once

#include "core/keyspace/keyspace.h"
#include "core/keyspace/reclaimer.h"
#include "persistence/journal.h"
#include "server/acl/command_table.h"
#include "server/acl/users.h"
#include "server/cluster/cluster_state.h"
#include "server/commands/services.h"
#include "server/config/config.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/pause_gate.h"
#include "server/dispatch/permissions.h"
#include "server/dispatch/registry.h"
#include "server/durability/durability.h"
#include "server/durability/durability_parts.h"
#include "server/process/gauges.h"
#include "server/process/memory_monitor.h"
#include "server/process/process_facts.h"
#include "server/process/server_state.h"
#include "server/process/statistics.h"
#include "server/process/tick_clock.h"
#include "server/pubsub/key_events.h"
#include "server/pubsub/tracking.h"
#include "server/replication/leader/leader.h"
#include "server/replication/roles/replica_controller.h"
#include "server/replication/roles/shutdown.h"
#include "server/replication/stream/replication.h"
#include "server/session/clients.h"
#include "server/session/observer.h"
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
