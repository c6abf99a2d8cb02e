// SPDX-License-Identifier: MIT
//
// DataLoader: restores the keyspace from the files at startup, and for DEBUG RELOAD and DEBUG
// LOADAOF.
//
// Invariants: while data are loaded, clients get LOADING, and the loaded keys are not journalled.
// Thread safety: any thread may call cancel() and read the counters of figures(). All other calls
// must not overlap, which the save slot ensures after startup.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "core/result.h"
#include "persistence/rdb/rdb_replication_info.h"
#include "server/durability/data/data_parts.h"
#include "server/durability/loading/load_figures.h"
#include "server/session/replayer.h"

namespace server {

class AppendLog;
class DataWriter;
class Saves;
struct Recovered;
struct RecoveryParts;

class DataLoader {
 public:
  DataLoader(const DataParts& parts, const DataWriter& writer, AppendLog& log, Saves& saves)
      : parts_(parts), writer_(writer), log_(log), saves_(saves) {}

  // Loads the data at startup.
  core::Result<Recovered> recover(ReplayerFactory make_replayer);
  // Returns the stream position of the data that recover() loaded, if the files state one.
  const std::optional<persistence::RdbReplicationInfo>& recovered_position() const {
    return recovered_position_;
  }
  // Makes a running load fail soon, because the server ends.
  void cancel() { is_cancelled_ = true; }
  bool is_cancelled() const { return is_cancelled_; }

  // The functions below implement DEBUG RELOAD and LOADAOF: they delete all keys and load them from
  // the files. From begin_reload() on, clients get LOADING. The caller must then wait until running
  // commands have ended. end_reload() calls `on_loaded` before another reload may begin.
  core::Result<> begin_reload();
  core::Result<> reload_snapshot(bool saves);
  core::Result<> reload_log();
  void end_reload(const std::function<void()>& on_loaded);

  // Loads only the snapshot file, including expired keys, for a replica.
  core::Result<> load_for_replica(const std::function<void()>& on_piece,
                                  const std::function<bool()>& is_wanted);

  const LoadFigures& figures() const { return figures_; }

 private:
  RecoveryParts recovery_parts();
  core::Result<> reload(const std::function<core::Result<>()>& load);

  const DataParts parts_;
  const DataWriter& writer_;
  AppendLog& log_;
  Saves& saves_;
  LoadFigures figures_;
  ReplayerFactory make_replayer_;
  std::optional<persistence::RdbReplicationInfo> recovered_position_;
  std::atomic<bool> is_cancelled_{false};
};

}  // namespace server
