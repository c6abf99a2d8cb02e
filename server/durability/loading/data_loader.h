// SPDX-License-Identifier: MIT
//
// DataLoader: brings the keyspace back from the files: at the start, and when DEBUG RELOAD or
// LOADAOF asks for it.
//
// Invariants: while data are loaded clients are told LOADING, and nothing of it is journalled.
// Thread safety: cancel() and the figures from any thread; of the rest, one call at a time, which
// the slot of saves sees to after the start.
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

  // At the start.
  core::Result<Recovered> recover(ReplayerFactory make_replayer);
  // Where in the replication stream the snapshot that recover() loaded stands, if it says so.
  const std::optional<persistence::RdbReplicationInfo>& recovered_position() const {
    return recovered_position_;
  }
  // Makes what loads end soon, with an error: the server ends.
  void cancel() { is_cancelled_ = true; }
  bool is_cancelled() const { return is_cancelled_; }

  // DEBUG RELOAD and LOADAOF: forgets all keys and loads them from the files. From begin_reload()
  // on clients are told LOADING; the caller drains what they had begun before it goes on.
  // end_reload() calls `on_loaded` before another one may begin.
  core::Result<> begin_reload();
  core::Result<> reload_snapshot(bool saves);
  core::Result<> reload_log();
  void end_reload(const std::function<void()>& on_loaded);

  // The snapshot file alone, with the keys that have expired, for a replica.
  core::Result<> load_for_replica(const std::function<void()>& on_piece);

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
