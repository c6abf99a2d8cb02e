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
#include "persistence/aof/aof_directory.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/session/replayer.h"

namespace core {
class Clock;
}
namespace core::keyspace {
class Keyspace;
}

namespace server {

class Config;

// How far loading is. Times are monotonic.
struct LoadFigures {
  std::atomic<uint64_t> total_bytes{0};
  std::atomic<uint64_t> loaded_bytes{0};
  std::atomic<uint64_t> loaded_keys{0};
  std::atomic<uint64_t> expired_keys{0};
  std::atomic<uint64_t> foreign_keys{0};
  std::atomic<int64_t> started_us{0};
  // Of what has been loaded: "snapshot" or "append log", and how long it took. Null for nothing.
  std::atomic<const char*> source{nullptr};
  std::atomic<int64_t> took_us{0};

  // Of the bytes, 0 to 1.
  double share() const {
    const uint64_t total = total_bytes.load();
    const uint64_t loaded = loaded_bytes.load();
    return loaded < total ? static_cast<double>(loaded) / static_cast<double>(total) : 1;
  }
};

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
// The snapshot file alone, which must be there.
core::Result<> recover_snapshot(const RecoveryParts& parts);
// As it was at `now_ms`, for expiries; kIgnoreExpiry keeps all keys.
core::Result<> recover_snapshot(const RecoveryParts& parts, int64_t now_ms);

}  // namespace server
