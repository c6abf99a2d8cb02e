// SPDX-License-Identifier: MIT
//
// A child process that saves shares big arrays with the server, so it may see bits that are set
// after the fork. Such bits are harmless if the stream after the snapshot is applied as effects
// (docs/architecture.md, "The journal"). If the stream's commands are executed again (another kind
// of server produces or reads the stream), the snapshot must be exact. The child then first copies
// the arrays' contents while the parent holds all stripe locks, so the snapshot contains no later
// bits.
#include "server/durability/saves/save_slot.h"

#include <mutex>
#include <string>
#include <utility>

#include "core/bloom/arrays/array_memory.h"
#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/scalable_filter.h"
#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/allocator.h"
#include "server/base/process/server_state.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/save_child.h"

namespace server {
namespace {

// Copies the shared arrays into memory of the child. Runs in the child.
core::Result<> detach_arrays(const core::keyspace::Keyspace& keyspace) {
  bool fits = true;
  for (unsigned i = 0; i < keyspace.database_count(); ++i) {
    keyspace.for_each(i, [&fits](core::keyspace::Entry& entry) {
      if (fits && entry.is_filter()) fits = entry.filter().detach_from_children();
    });
  }
  if (!fits) return core::Error{std::string(kNoRoomForExactChild), core::ErrorCode::kOutOfMemory};
  return {};
}

}  // namespace

std::function<void(const persistence::RdbProgress&)> report_to(SaveFigures& figures) {
  return [&figures](const persistence::RdbProgress& progress) {
    figures.written_bytes = progress.bytes;
    figures.written_keys = progress.keys;
  };
}

SaveSlot::SaveSlot(const DataParts& parts, AppendLog& log, const SaveMachine& machine)
    : parts_(parts), log_(log), machine_(std::make_unique<const SaveMachine>(machine)) {}

SaveSlot::~SaveSlot() = default;

bool SaveSlot::claim(SaveTask task) {
  SaveTask none = SaveTask::kNone;
  if (!task_.compare_exchange_strong(none, task)) return false;
  parts_.state.may_have_child = true;
  return true;
}

void SaveSlot::release() {
  log_.suspend_syncs(false);
  parts_.state.may_have_child = false;
  task_ = SaveTask::kNone;
}

bool SaveSlot::exact_child_fits() const {
  return core::bloom::ArrayMemory::of_process().resident_bytes() <= machine_->free_bytes();
}

core::Result<> SaveSlot::begin_child(const SaveWork& work, Beginning beginning) {
  const SaveWork detached_work = [&](SaveFigures& figures) -> core::Result<> {
    if (auto detached = detach_arrays(parts_.keyspace); !detached) return detached;
    figures.is_detached = true;
    return work(figures);
  };
  // The count of forks is incremented before the fork, because a replica may have the child's
  // snapshot before the parent runs again.
  ++fork_count_;
  auto child = machine_->start_child(parts_.clock, beginning.is_exact ? detached_work : work,
                                     {std::move(beginning.kept), machine_->closed_last()});
  if (!child) {
    --fork_count_;
    return child.error();
  }
  if (beginning.is_exact) (*child)->await_detached();
  last_fork_us_ = (*child)->fork_us();
  log_notice("Background {} started by pid {}, the fork took {} us", beginning.purpose,
             (*child)->process_id(), (*child)->fork_us());
  log_.suspend_syncs(parts_.config.flag(OptionId::kNoAppendFsyncOnRewrite));
  const std::scoped_lock lock(mutex_);
  child_ = std::move(*child);
  changes_at_fork_ = parts_.state.changes;
  flushes_at_fork_ = parts_.state.flushes;
  bytes_at_fork_ = heap_bytes() + core::bloom::mapped_bytes();
  keys_at_fork_ = 0;
  for (unsigned i = 0; i < parts_.keyspace.database_count(); ++i) {
    keys_at_fork_ += parts_.keyspace.db_size(i);
  }
  return {};
}

bool SaveSlot::has_child() const {
  const std::scoped_lock lock(mutex_);
  return child_ != nullptr;
}

void SaveSlot::kill_child(SaveTask task) {
  const std::scoped_lock lock(mutex_);
  // A child exists only while its task has claimed the slot.
  if (child_ != nullptr && task_ == task) child_->kill();
}

void SaveSlot::kill_outdated_child() {
  const std::scoped_lock lock(mutex_);
  if (child_ == nullptr || task_ == SaveTask::kRewrite) return;
  if (flushes_at_fork_ != parts_.state.flushes) child_->kill();
}

void SaveSlot::kill_child() {
  const std::scoped_lock lock(mutex_);
  if (child_ != nullptr) child_->kill();
}

std::optional<SaveEnd> SaveSlot::take_ended() {
  const std::scoped_lock lock(mutex_);
  if (child_ == nullptr) return std::nullopt;
  const auto result = child_->poll();
  // The child begins once the log's previous file is synced. After a failed sync the child need not
  // wait, because the base that it writes replaces the unsynced bytes.
  const persistence::AofWriter& writer = log_.writer();
  if (!writer.awaits_sync() || writer.has_lost_sync()) child_->let_begin();
  if (!result) return std::nullopt;
  SaveEnd end{*result,
              !*result && child_->was_killed(),
              (parts_.clock.monotonic_us() - child_->started_us()) / core::kSecondUs,
              child_->figures().copied_bytes,
              changes_at_fork_,
              flushes_at_fork_};
  child_.reset();
  return end;
}

SaveProgress SaveSlot::progress() const {
  const std::scoped_lock lock(mutex_);
  if (child_ == nullptr) return {};
  return {parts_.clock.monotonic_us() - child_->started_us(), child_->figures().written_bytes,
          bytes_at_fork_, child_->figures().written_keys, keys_at_fork_};
}

}  // namespace server
