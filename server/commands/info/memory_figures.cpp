// SPDX-License-Identifier: MIT
#include "server/commands/info/memory_figures.h"

#include "core/bloom/arrays/array_memory.h"
#include "core/keyspace/keyspace.h"
#include "server/durability/durability.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/replication.h"
#include "server/session/clients.h"

namespace server {
namespace {

using namespace core::keyspace;

void measure_tables(Keyspace& keyspace, Locking locking, MemoryFigures& figures) {
  const unsigned count = keyspace.database_count();
  for (unsigned i = 0; i < count; ++i) figures.databases.push_back({.index = i});
  for (unsigned stripe = 0; stripe < kStripeCount; ++stripe) {
    const StripeMask mask = locking == Locking::kTake ? StripeMask{1} << stripe : 0;
    const StripeLock lock = keyspace.lock(mask, LockMode::kShared);
    for (MemoryFigures::DatabaseBytes& database : figures.databases) {
      const Database& share = keyspace.database_of_stripe(stripe, database.index);
      if (share.table != nullptr) database.tables += share.table->memory_bytes();
      database.expiries += share.expiry_index.memory_bytes();
    }
  }
  // These objects are not part of startup_bytes, which is measured before the keyspace is created.
  figures.table_bytes = kStripeCount * (sizeof(Stripe) + count * sizeof(Database));
  for (const auto& database : figures.databases) {
    figures.table_bytes += database.tables + database.expiries;
  }
}

}  // namespace

MemoryFigures measure_memory(Services& services, Locking locking) {
  const MemoryMonitor& memory = services.memory;
  MemoryFigures figures;
  figures.parts = memory.measure();
  figures.used_bytes = figures.parts.used();
  figures.peak_bytes = memory.peak_bytes();
  figures.startup_bytes = memory.startup_bytes();
  figures.resident = resident_memory();
  figures.resident_array_bytes = core::bloom::resident_array_bytes();
  const StreamMemory stream(services.replication.backlog());
  const Clients::Memory clients = services.clients.memory();
  figures.backlog_bytes = stream.backlog_bytes;
  figures.log_bytes = services.durability.log_memory_bytes();
  figures.client_bytes = clients.normal_bytes;
  figures.stream_replica_bytes = stream.replica_bytes;
  figures.replica_bytes = clients.replica_bytes + stream.replica_bytes;
  figures.allocator = allocator_figures();
  measure_tables(services.keyspace, locking, figures);
  std::erase_if(figures.databases, [&](const MemoryFigures::DatabaseBytes& database) {
    const uint64_t keys = services.keyspace.db_size(database.index);
    figures.key_count += keys;
    return keys == 0;
  });
  return figures;
}

}  // namespace server
