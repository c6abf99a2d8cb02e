// SPDX-License-Identifier: MIT
//
// StreamPosition: where in the replication stream the keyspace stands, as snapshots tell it.
//
// Invariants: while hold() is held and all stripes are locked, neither the keyspace nor the
// position moves. hold() comes before the stripes; who has the stripes already may only try.
// Thread safety: all members may be called from any thread.
// Source: docs/replication.md, "Snapshots".
#pragma once

#include <mutex>
#include <optional>

#include "persistence/rdb/rdb_writer.h"

namespace server {

class StreamPosition {
 public:
  // Taken again by a thread that has it: within EXEC.
  virtual std::recursive_mutex& apply_mutex() = 0;
  // Nothing when there is no stream. REQUIRES: see above.
  virtual std::optional<persistence::RdbReplicationInfo> position() const = 0;

 protected:
  ~StreamPosition() = default;
};

}  // namespace server
