// SPDX-License-Identifier: MIT
//
// MemoryFigures: the uses of memory that INFO, MEMORY STATS and MEMORY DOCTOR show.
//
// Invariants: the figures come from one measurement, so INFO and MEMORY STATS agree while nothing
// else runs.
// Thread safety: any thread may call measure_memory(). Each MemoryFigures object belongs to one
// thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/keyspace/locking.h"
#include "server/base/process/allocator.h"
#include "server/base/process/memory_monitor.h"
#include "server/commands/services.h"

namespace server {

struct MemoryFigures {
  uint64_t used_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t startup_bytes = 0;
  MemoryMonitor::Parts parts;
  ResidentMemory resident;
  uint64_t resident_array_bytes = 0;
  uint64_t backlog_bytes = 0;
  uint64_t log_bytes = 0;
  uint64_t table_bytes = 0;
  uint64_t client_bytes = 0;
  uint64_t replica_bytes = 0;         // bytes of the replicas' clients, and stream_replica_bytes
  uint64_t stream_replica_bytes = 0;  // bytes of the stream that only slow replicas still need
  uint64_t key_count = 0;
  struct DatabaseBytes {
    unsigned index;
    uint64_t tables = 0;
    uint64_t expiries = 0;
  };
  std::vector<DatabaseBytes> databases;  // bytes of the hash tables of each database that has keys
  AllocatorFigures allocator;

  uint64_t overhead_bytes() const {
    return startup_bytes + table_bytes + client_bytes + replica_bytes + backlog_bytes + log_bytes;
  }
  uint64_t dataset_bytes() const { return used_bytes - std::min(used_bytes, overhead_bytes()); }
  uint64_t grown_bytes() const { return used_bytes - std::min(used_bytes, startup_bytes); }
};

// Measures the memory. Locks one stripe at a time, unless `locking` is kHeld.
MemoryFigures measure_memory(Services& services, core::keyspace::Locking locking);

inline double ratio_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Returns a signed difference, because used memory can exceed resident memory: used memory includes
// pages of mapped bit arrays that were never written.
inline int64_t signed_difference(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a) - static_cast<int64_t>(b);
}

}  // namespace server
