// SPDX-License-Identifier: MIT
//
// recover: brings back what the data directory holds, before the server serves.
//
//   append log on:  its base, then its incremental files in order; a torn tail is cut
//   no log yet, or off:  the snapshot file
//
// Invariants: a damaged file ends the recovery with its name and the place, and nothing on the disk
// is changed then. After success the keyspace holds all that a file said.
// Thread safety: one call, while no client is served; figures may be read meanwhile.
// Source: docs/formats.md, "Snapshots" and "Append log".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/result.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/rdb/rdb_replication_info.h"
#include "server/session/replayer.h"

namespace core {
class Clock;
}
namespace core::keyspace {
class Keyspace;
}
namespace persistence {
class AofDirectory;
class FileSystem;
}  // namespace persistence

namespace server {

class Config;
struct LoadFigures;

struct RecoveryParts {
  const Config& config;
  const core::Clock& clock;
  core::keyspace::Keyspace& keyspace;
  persistence::FileSystem& files;
  persistence::AofDirectory& log_directory;
  LoadFigures& figures;
  const std::atomic<bool>& is_cancelled;
  ReplayerFactory make_replayer;
  // Called after each piece of a snapshot, if set.
  std::function<void()> on_piece;
};

struct Recovered {
  // Of the append log, when it is on.
  persistence::AofManifest manifest;
  std::optional<persistence::AofWriter::Tail> tail;
  uint64_t log_bytes = 0;
  // The data came from a snapshot: the log that begins now needs a base.
  bool needs_base = false;
  // Of the snapshot file, where it says so.
  std::optional<persistence::RdbReplicationInfo> position;
};

core::Result<Recovered> recover(const RecoveryParts& parts);
// The snapshot file alone, which must be there, with its expired keys.
core::Result<> recover_snapshot(const RecoveryParts& parts);

}  // namespace server
