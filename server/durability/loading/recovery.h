// SPDX-License-Identifier: MIT
//
// recover: restores the keyspace from the files in the data directory, at startup and for DEBUG
// RELOAD and DEBUG LOADAOF.
//
//   append log on:  its base, then its incremental files in order; a torn tail is cut
//   no log yet, or off:  the snapshot file
//
// Invariants: a damaged file ends the recovery with an error that gives the file's name and the
// offset, and no data on disk are changed. The single file of a log from before Redis 7 may already
// be in the log's directory, where the next start finds it. After success the keyspace contains all
// data of the files.
// Thread safety: only one call may run at a time, and no client's command may run meanwhile. During
// the call other threads may read the load's counters.
// Source: docs/formats.md, "Snapshots" and "Append log".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/result.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/rdb/rdb_replication_info.h"
#include "server/durability/data/data_parts.h"
#include "server/session/replayer.h"

namespace persistence {
class AofDirectory;
}

namespace server {

struct LoadFigures;

struct RecoveryParts : DataParts {
  persistence::AofDirectory& log_directory;
  LoadFigures& figures;
  const std::atomic<bool>& is_cancelled;
  ReplayerFactory make_replayer;
  // Called after each piece of a snapshot has been read; may be empty.
  std::function<void()> on_piece;
  // Returns false to abandon the load of a snapshot. Must be thread-safe. An empty function means
  // that no load is abandoned.
  std::function<bool()> is_wanted = {};
};

struct Recovered {
  // The append log's manifest, if the log is on.
  persistence::AofManifest manifest;
  std::optional<persistence::AofWriter::Tail> tail;
  uint64_t log_bytes = 0;
  // True if the data came from a snapshot, so that a new log needs a base.
  bool needs_base = false;
  // The position of the data in a replication stream; nullopt if the files state none.
  std::optional<persistence::RdbReplicationInfo> position;
};

core::Result<Recovered> recover(const RecoveryParts& parts);
// Loads only the snapshot file, which must exist. Keys that have expired are loaded too.
core::Result<> recover_snapshot(const RecoveryParts& parts);
// Deletes all keys. Calls `first` before the deletion, while all stripes are locked.
void delete_all_keys(
    core::keyspace::Keyspace& keyspace, const std::function<void()>& first = [] {});

}  // namespace server
