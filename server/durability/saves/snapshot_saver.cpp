// SPDX-License-Identifier: MIT
#include "server/durability/saves/snapshot_saver.h"

#include <string>
#include <string_view>

#include "core/bloom/arrays/array_memory.h"
#include "core/clock.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/server_state.h"
#include "server/durability/data/data_writer.h"
#include "server/durability/data/file_names.h"
#include "server/durability/saves/save_policy.h"
#include "server/durability/saves/save_slot.h"

namespace server {
namespace {

// Pause after a failure, so that a full disk is not retried continuously.
constexpr int64_t kRetrySaveUs = 5 * core::kSecondUs;
constexpr std::string_view kIsSavingAlready = "ERR Background save already in progress";

}  // namespace

core::Result<SaveStart> SnapshotSaver::schedule() {
  if (slot_.refuses_children()) return core::Error{std::string(kServerIsEnding)};
  if (slot_.task() == SaveTask::kSave) return core::Error{std::string(kIsSavingAlready)};
  is_scheduled_ = true;
  return SaveStart::kScheduled;
}

core::Result<SaveStart> SnapshotSaver::start(bool may_wait) {
  if (slot_.refuses_children()) return core::Error{std::string(kServerIsEnding)};
  if (!slot_.claim(SaveTask::kSave)) {
    if (slot_.task() == SaveTask::kSave) return core::Error{std::string(kIsSavingAlready)};
    if (!may_wait) {
      return core::Error{
          "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
          "in order to schedule a BGSAVE whenever possible."};
    }
    is_scheduled_ = true;
    return SaveStart::kScheduled;
  }
  if (auto forked = fork(); !forked) {
    history_.record_no_child();
    parts_.state.availability.begin(Availability::kSnapshotFailed);
    slot_.release();
    log_warning("Can't save in background: {}", forked.error().message);
    return forked.error();
  }
  return SaveStart::kStarted;
}

core::Result<> SnapshotSaver::fork() {
  const auto stream = writer_.hold_stream(Locking::kTake);
  const auto stripes = writer_.lock_stripes(Locking::kTake);
  auto options = writer_.options(false);
  options.replication = writer_.resumable_position();
  bool is_exact = options.replication && options.replication->is_foreign;
  if (is_exact && !slot_.exact_child_fits()) {
    is_exact = false;
    options.replication.reset();
    log_notice(
        "The snapshot will not say its offset in the leader's stream: too little "
        "memory is free to copy all filters");
  }
  if (options.replication && !is_exact) {
    options.replication->is_ahead = core::bloom::ArrayMemory::of_process().reserved_bytes() > 0;
  }
  const auto work = [&, place = writer_.snapshot_place()](SaveFigures& figures) {
    options.on_progress = report_to(figures);
    return writer_.write_snapshot(place, options);
  };
  return slot_.begin_child(work, {.purpose = "saving", .is_exact = is_exact});
}

core::Result<> SnapshotSaver::save(Locking locking) {
  while (!slot_.claim(SaveTask::kSave)) {
    const SaveTask other = slot_.task();
    // A rewrite writes another file, so SAVE may run at the same time. The stream's mutex
    // serializes SAVE and the start of the rewrite.
    if (other == SaveTask::kRewrite) return save_claimed(locking);
    // If the task that held the save slot has just released it, the loop tries to claim the slot
    // again.
    if (other != SaveTask::kNone) return core::Error{std::string(kIsSavingAlready)};
  }
  auto saved = save_claimed(locking);
  slot_.release();
  return saved;
}

core::Result<> SnapshotSaver::save_claimed(Locking locking) {
  const auto stream = writer_.hold_stream(locking);
  return save_held(locking);
}

core::Result<> SnapshotSaver::save_held(Locking locking) {
  const uint64_t changes = parts_.state.changes;
  uint64_t flushes = 0;
  core::Result<> saved;
  {
    const auto stripes = writer_.lock_stripes(locking);
    flushes = parts_.state.flushes;
    auto options = writer_.options(false);
    options.replication = writer_.resumable_position();
    saved = writer_.write_snapshot(writer_.snapshot_place(), options);
  }
  history_.record_saved_here(saved.has_value());
  if (!saved) {
    log_warning("Error saving DB on disk: {}", saved.error().message);
    return saved;
  }
  changes_at_save_ = changes;
  flushes_saved_ = flushes;
  record_time_of_save();
  parts_.state.availability.end(Availability::kSnapshotFailed);
  log_notice("DB saved on disk");
  return {};
}

void SnapshotSaver::finish(const SaveEnd& end) {
  if (!end.result) (void)parts_.files.remove(temporary_snapshot());
  // The server itself stopped the child process, so the disk did not fail and writes are not
  // rejected.
  if (end.was_stopped) return log_notice("Background saving was stopped");
  history_.record_end(end, end.result.has_value());
  if (!end.result) {
    log_warning("Background saving failed: {}", end.result.error().message);
    parts_.state.availability.begin(Availability::kSnapshotFailed);
    next_us_ = parts_.clock.monotonic_us() + kRetrySaveUs;
    return;
  }
  log_notice("Background saving terminated with success, {} MB of memory were copied meanwhile",
             end.copied_bytes >> 20);
  parts_.state.availability.end(Availability::kSnapshotFailed);
  changes_at_save_ = end.changes_at_fork;
  flushes_saved_ = end.flushes_at_fork;
  record_time_of_save();
}

void SnapshotSaver::start_if_due() {
  const int64_t now_us = parts_.clock.monotonic_us();
  const bool is_scheduled = is_scheduled_.exchange(false);
  if (!is_scheduled && (now_us < next_us_ || !is_due())) return;
  // If another task has just claimed the save slot, a scheduled save stays scheduled.
  if (!start(is_scheduled)) next_us_ = now_us + kRetrySaveUs;
}

bool SnapshotSaver::is_due() const {
  if (owes_flush()) return true;
  const std::string save_points = parts_.config.text(OptionId::kSave);
  // After a failed save writes may be refused. So a save point may never be reached again.
  if (parts_.state.availability.has(Availability::kSnapshotFailed) && !save_points.empty()) {
    return true;
  }
  return save_point_is_reached(save_points, changes_since_save(),
                               (parts_.clock.monotonic_us() - last_save_us_) / core::kSecondUs);
}

uint64_t SnapshotSaver::changes_since_save() const {
  return parts_.state.changes - changes_at_save_;
}

void SnapshotSaver::record_time_of_save() {
  last_save_s_ = parts_.clock.wall_ms() / 1000;
  last_save_us_ = parts_.clock.monotonic_us();
}

bool SnapshotSaver::owes_flush() const {
  return parts_.state.flushes != flushes_saved_ && !parts_.config.text(OptionId::kSave).empty();
}

void SnapshotSaver::record_loaded() {
  record_time_of_save();
  changes_at_save_ = parts_.state.changes.load();
  flushes_saved_ = parts_.state.flushes.load();
}

}  // namespace server
