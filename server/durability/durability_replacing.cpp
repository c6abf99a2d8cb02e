// SPDX-License-Identifier: MIT
//
// The part of Durability that gives up all data for a snapshot that a leader has sent.
#include <chrono>
#include <utility>

#include "server/durability/durability.h"
#include "server/durability/file_names.h"
#include "server/process/log.h"

namespace server {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

core::Result<> Durability::replace_data(const Replacement& replacement) {
  // A save of data that is about to go is of no use.
  const auto spares = [] { return false; };
  if (!claim_from_child(spares)) return core::Error{"the server ends"};
  availability.begin(Availability::kLoading);
  core::Result<> replaced = core::Error{"the server ends"};
  // Before the mutex, for which a command may wait.
  if (await_commands(replacement.on_piece)) {
    // Not before the task is claimed: a save that begins waits for the mutex.
    const auto stream = hold_stream(Locking::kTake);
    replaced = replacement.may_begin() ? replace_claimed(replacement)
                                       : core::Error{"the role has changed"};
  }
  availability.end(Availability::kLoading);
  release();
  return replaced;
}

// Until every command has ended that began before clients were told LOADING: a replica that takes
// writes would have one of them among the keys that are loaded. False when the server ends.
bool Durability::await_commands(const std::function<void()>& on_piece) {
  constexpr std::chrono::milliseconds kPieceTime{100};
  struct Ended {
    std::mutex mutex;
    std::condition_variable condition;
    bool value = false;
  };
  if (parts_.commands == nullptr) return true;
  const auto ended = std::make_shared<Ended>();
  parts_.commands->drain([ended] {
    const std::scoped_lock lock(ended->mutex);
    ended->value = true;
    ended->condition.notify_one();
  });
  std::unique_lock lock(ended->mutex);
  while (!ended->condition.wait_for(lock, kPieceTime, [&] { return ended->value; })) {
    // The thread that ends the server may be the one that had to be waited for.
    if (refuses_children_ || recovery_is_cancelled_) return false;
    on_piece();
  }
  return true;
}

core::Result<> Durability::replace_claimed(const Replacement& replacement) {
  // The log's next base is made while nothing is lost yet: a full disk leaves the data as it is.
  const bool has_base = wants_log_;
  if (has_base) {
    auto made = persistence::duplicate_file(parts_.files, replacement.path, temporary_base());
    if (!made) return made;
  }
  // From here on a start without an append log finds the new data; one with a log finds the old
  // until begin_log_afresh().
  auto placed = parts_.files.rename(replacement.path, snapshot_path());
  if (placed) placed = parts_.files.sync_directory(".");
  if (!placed) {
    if (has_base) (void)parts_.files.remove(temporary_base());
    return placed;
  }
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
  if (!loaded) lose_data(loaded.error());
  changes_at_save_ = parts_.state.changes.load();
  last_save_s_ = parts_.clock.wall_ms() / 1000;
  if (has_base) begin_log_afresh(loaded.has_value());
  // Not before a start would find the data that the stream goes on from.
  if (loaded) {
    replacement.on_loaded();
  } else {
    replacement.on_lost();
  }
  parts_.journal.suspend(false);
  return loaded;
}

// The base is the snapshot that was loaded, or an empty one. Failures: what is written from now on
// would not be found by a start, so writes are refused until a rewrite has made a base.
void Durability::begin_log_afresh(bool is_loaded) {
  const std::scoped_lock one_at_a_time(log_switch_mutex_);
  const auto begin = [&]() -> core::Result<> {
    constexpr auto kRdb = persistence::AofBaseFormat::kRdb;
    if (!is_loaded) {
      auto written = write_base(kRdb, temporary_base(), write_options(true));
      if (!written) return written.error();
    }
    if (auto opened = open_log(); !opened) return opened;
    if (auto replaced = writer_.replace_base(temporary_base(), kRdb); !replaced) return replaced;
    files_are_stale_ = false;
    rewrite_is_scheduled_ = wanted_base_format() != kRdb;
    return {};
  };
  // Without its data, an end must leave the files as they are.
  if (!is_loaded && recovery_is_cancelled_) return;
  if (!wants_log_) return (void)parts_.files.remove(temporary_base());
  files_are_stale_ = true;
  const auto begun = begin();
  if (begun) return;
  (void)parts_.files.remove(temporary_base());
  const std::string reason(core::without_code(begun.error().message));
  log_error("The append log can't be begun anew, writes are refused until it is: {}", reason);
  availability.append_log_failed(reason);
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
