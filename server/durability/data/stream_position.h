// SPDX-License-Identifier: MIT
//
// StreamPosition: the keyspace's position in the replication stream, as snapshots record it.
//
// Invariants: while apply_mutex() is held and all stripes are locked, neither the keyspace nor the
// position changes. The mutex is locked before the stripes. A thread that holds all stripes for
// commands (EXEC, Locking::kHeld) holds the mutex too.
// Thread safety: all members may be called from any thread.
// Source: docs/replication.md, "Snapshots".
#pragma once

#include <cassert>
#include <mutex>
#include <optional>

#include "core/keyspace/locking.h"
#include "persistence/rdb/rdb_replication_info.h"
#include "server/base/process/ordered_mutex.h"

namespace server {

class StreamPosition {
 public:
  virtual OrderedMutex& apply_mutex() = 0;
  // Returns the position; nullopt if there is no stream. REQUIRES: apply_mutex() and all stripes
  // are locked.
  virtual std::optional<persistence::RdbReplicationInfo> position() const = 0;
  // Returns whether the data differ from the result of applying the stream up to position().
  // REQUIRES: apply_mutex() and all stripes are locked.
  virtual bool has_diverged() const = 0;

  // Locks the mutex for the lifetime of the result, unless the caller holds the mutex already.
  [[nodiscard]] std::unique_lock<OrderedMutex> hold(core::keyspace::Locking locking) {
    if (locking == core::keyspace::Locking::kTake) return std::unique_lock(apply_mutex());
    assert(apply_mutex().is_held());
    return {};
  }

 protected:
  ~StreamPosition() = default;
};

}  // namespace server
