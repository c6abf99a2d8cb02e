// SPDX-License-Identifier: MIT
//
// The part of Durability that gives up all data for a snapshot that a leader has sent.
#include <unistd.h>

#include <utility>

#include "server/durability/durability.h"
#include "server/durability/file_names.h"
#include "server/log.h"

namespace server {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

// A save of data that is about to go is of no use.
bool Durability::claim_from_child() {
  constexpr useconds_t kPauseUs = 1000;
  while (!claim(Task::kSave)) {
    if (recovery_is_cancelled_) return false;
    {
      const std::scoped_lock lock(mutex_);
      if (child_ != nullptr) child_->kill();
    }
    poll_child();
    ::usleep(kPauseUs);
  }
  return true;
}

core::Result<> Durability::replace_data(const Replacement& replacement) {
  if (!claim_from_child()) return core::Error{"the server ends"};
  // Not before the task is claimed: a save that begins waits for the mutex.
  const auto stream = hold_stream(Locking::kTake);
  core::Result<> replaced = core::Error{"the role has changed"};
  if (replacement.may_begin()) {
    availability.begin(Availability::kLoading);
    replaced = replace_claimed(replacement);
    availability.end(Availability::kLoading);
  }
  release();
  return replaced;
}

core::Result<> Durability::replace_claimed(const Replacement& replacement) {
  // From here on a start without an append log finds the new data; one with a log finds the old
  // until the new one's base is there.
  if (auto renamed = parts_.files.rename(replacement.path, snapshot_path()); !renamed) {
    return renamed;
  }
  if (auto synced = parts_.files.sync_directory("."); !synced) return synced;
  core::keyspace::DetachedTables old;
  {
    const std::scoped_lock one_at_a_time(log_switch_mutex_);
    const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kExclusive);
    if (writer_.is_open()) close_log();
    parts_.journal.suspend(true);
    old = parts_.keyspace.flush_all();
  }
  append_log_.on_progress();
  old.clear();
  auto parts = recovery_parts();
  parts.on_piece = replacement.on_piece;
  auto loaded = server::recover_snapshot(parts, core::keyspace::kIgnoreExpiry);
  if (loaded) {
    replacement.on_loaded();
  } else {
    lose_data(loaded.error());
    replacement.on_lost();
  }
  parts_.journal.suspend(false);
  changes_at_save_ = parts_.changes.load();
  last_save_s_ = parts_.clock.wall_ms() / 1000;
  const std::scoped_lock one_at_a_time(log_switch_mutex_);
  if (wants_log_ && !recovery_is_cancelled_) {
    // The own thread tries again when this fails.
    if (auto begun = begin_log(); !begun) {
      log_warning("Can't begin the append log anew: {}", begun.error().message);
    }
  }
  return loaded;
}

// Half of a snapshot is worth less than nothing.
void Durability::lose_data(const core::Error& reason) {
  core::keyspace::DetachedTables half;
  {
    const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kExclusive);
    half = parts_.keyspace.flush_all();
  }
  half.clear();
  if (recovery_is_cancelled_) return;
  log_warning("The leader's snapshot could not be loaded, there are no data now: {}",
              reason.message);
  (void)parts_.files.remove(snapshot_path());
}

}  // namespace server
