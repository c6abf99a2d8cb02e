// SPDX-License-Identifier: MIT
//
// The part of Durability that loads: at the start, and when DEBUG asks for it.
#include <utility>

#include "server/durability/durability.h"
#include "server/durability/file_names.h"
#include "server/process/log.h"

namespace server {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

core::Result<> Durability::recover(ReplayerFactory make_replayer) {
  make_replayer_ = std::move(make_replayer);
  auto recovered = server::recover(recovery_parts());
  if (!recovered) return recovered.error();
  recovered_position_ = recovered->position;
  const auto removed = persistence::remove_temporary_snapshots(parts_.files, ".", snapshot_path());
  if (!removed) return removed.error();
  for (const std::string& path : *removed) log_notice("Removed '{}', an unfinished file", path);
  last_save_s_ = parts_.clock.wall_ms() / 1000;
  changes_at_save_ = parts_.state.changes.load();
  wants_log_ = parts_.config.flag(OptionId::kAppendOnly);
  if (!wants_log_) return {};
  if (auto swept = log_directory_.sweep(recovered->manifest); !swept) return swept;
  const auto begin = recovered->needs_base ? persistence::AofWriter::Begin::kWithBase
                                           : persistence::AofWriter::Begin::kNow;
  if (auto opened = writer_.open(std::move(recovered->manifest), recovered->tail,
                                 recovered->log_bytes, begin);
      !opened) {
    return opened;
  }
  if (recovered->needs_base) {
    if (auto written = write_first_base(); !written) return written;
  }
  parts_.journal.set_active(true);
  return {};
}

// A log that begins behind a snapshot is worth nothing before that snapshot is its base.
core::Result<> Durability::write_first_base() {
  const auto format = wanted_base_format();
  if (auto saved = write_base(format, temporary_base(), write_options(true)); !saved)
    return saved.error();
  return writer_.replace_base(temporary_base(), format);
}

RecoveryParts Durability::recovery_parts() {
  return {parts_.config,          parts_.clock,   parts_.keyspace,
          parts_.files,           log_directory_, load_figures_,
          recovery_is_cancelled_, make_replayer_, {}};
}

core::Result<> Durability::begin_reload() {
  if (!claim(Task::kSave)) return core::Error{"ERR Background save already in progress"};
  availability.begin(Availability::kLoading);
  return {};
}

void Durability::end_reload(const std::function<void()>& on_loaded) {
  availability.end(Availability::kLoading);
  on_loaded();
  release();
}

core::Result<> Durability::reload(const std::function<core::Result<>()>& load) {
  core::keyspace::DetachedTables tables;
  {
    const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kExclusive);
    parts_.journal.suspend(true);
    tables = parts_.keyspace.flush_all();
  }
  tables.clear();
  auto loaded = load();
  parts_.journal.suspend(false);
  return loaded;
}

core::Result<> Durability::reload_snapshot(bool saves) {
  // A leader's stream is no client's: it waits for this.
  const auto stream = hold_stream(Locking::kTake);
  if (saves) {
    if (auto saved = save_here(Locking::kTake); !saved) return saved;
  }
  return reload([this] { return server::recover_snapshot(recovery_parts()); });
}

core::Result<> Durability::reload_log() {
  const auto stream = hold_stream(Locking::kTake);
  if (!writer_.is_open() || writer_.needs_base()) {
    return core::Error{"ERR the append log is not on"};
  }
  if (auto flushed = append_log_.flush(); !flushed) return flushed;
  return reload([this]() -> core::Result<> {
    const auto recovered = server::recover(recovery_parts());
    if (!recovered) return recovered.error();
    return {};
  });
}

}  // namespace server
