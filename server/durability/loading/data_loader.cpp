// SPDX-License-Identifier: MIT
#include "server/durability/loading/data_loader.h"

#include <utility>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/server_state.h"
#include "server/durability/data/data_writer.h"
#include "server/durability/loading/recovery.h"
#include "server/durability/log/append_log.h"
#include "server/durability/log/log_files.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"

namespace server {

using core::keyspace::Locking;

core::Result<Recovered> DataLoader::recover(ReplayerFactory make_replayer) {
  make_replayer_ = std::move(make_replayer);
  auto recovered = server::recover(recovery_parts());
  if (!recovered) return recovered;
  recovered_position_ = recovered->position;
  const auto removed =
      persistence::remove_temporary_snapshots(parts_.files, ".", writer_.snapshot_path());
  if (!removed) return removed.error();
  for (const std::string& path : *removed) log_notice("Removed '{}', an unfinished file", path);
  saves_.snapshots.record_loaded();
  return recovered;
}

RecoveryParts DataLoader::recovery_parts() {
  return {parts_, log_.files().directory(), figures_, is_cancelled_, make_replayer_, {}};
}

core::Result<> DataLoader::begin_reload() {
  if (!saves_.slot.claim(SaveTask::kSave)) {
    return core::Error{"ERR Background save already in progress"};
  }
  parts_.state.availability.begin(Availability::kLoading);
  return {};
}

void DataLoader::end_reload(const std::function<void()>& on_loaded) {
  parts_.state.availability.end(Availability::kLoading);
  on_loaded();
  saves_.slot.release();
}

core::Result<> DataLoader::reload(const std::function<core::Result<>()>& load) {
  delete_all_keys(parts_.keyspace, [this] { parts_.journal.suspend(true); });
  auto loaded = load();
  parts_.journal.suspend(false);
  return loaded;
}

core::Result<> DataLoader::reload_snapshot(bool saves) {
  // While this thread holds the stream's mutex, no command from a leader is applied. Holding back
  // the commands of clients would not stop the leader's commands.
  const auto stream = writer_.hold_stream(Locking::kTake);
  if (saves) {
    if (auto saved = saves_.snapshots.save_held(Locking::kTake); !saved) return saved;
  }
  // Expired keys are deleted as usual: the log and the replicas get a DEL.
  return reload([this] { return server::recover_snapshot(recovery_parts()); });
}

core::Result<> DataLoader::reload_log() {
  const auto stream = writer_.hold_stream(Locking::kTake);
  if (!log_.is_open() || log_.writer().needs_base()) {
    return core::Error{"ERR the append log is not on"};
  }
  if (auto flushed = log_.flush(); !flushed) return flushed;
  return reload([this] { return core::without_value(server::recover(recovery_parts())); });
}

core::Result<> DataLoader::load_for_replica(const std::function<void()>& on_piece,
                                            const std::function<bool()>& is_wanted) {
  auto parts = recovery_parts();
  parts.is_wanted = is_wanted;
  parts.on_piece = on_piece;
  return server::recover_snapshot(parts);
}

}  // namespace server
