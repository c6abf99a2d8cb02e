// SPDX-License-Identifier: MIT
#include "server/durability/loading/data_replacer.h"

#include <chrono>
#include <future>
#include <memory>

#include "core/keyspace/keyspace.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "server/base/log/log.h"
#include "server/base/process/command_drain.h"
#include "server/base/process/server_state.h"
#include "server/durability/data/data_writer.h"
#include "server/durability/data/file_names.h"
#include "server/durability/loading/data_loader.h"
#include "server/durability/loading/log_switch.h"
#include "server/durability/loading/recovery.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"

namespace server {

using core::keyspace::Locking;

core::Result<> DataReplacer::replace(const Replacement& replacement) {
  // A running save is stopped, because its data are about to be replaced.
  const auto spares = [] { return false; };
  const auto is_over = [this] { return loader.is_cancelled(); };
  if (!saves.claim_from_child(spares, is_over)) return core::Error{"the server ends"};
  Availability& availability = parts.state.availability;
  availability.begin(Availability::kLoading);
  core::Result<> replaced = core::Error{"the server ends"};
  // Running commands must end before this thread locks the stream's mutex, because such a command
  // may wait for this mutex.
  if (await_commands(replacement.on_piece)) {
    // The stream's mutex is locked after the save slot was claimed, because a save first claims the
    // slot and then waits for the mutex.
    const auto stream = writer.hold_stream(Locking::kTake);
    replaced = replacement.may_begin() ? replace_claimed(replacement)
                                       : core::Error{"the role has changed"};
  }
  availability.end(Availability::kLoading);
  saves.slot.release();
  return replaced;
}

// Waits for the end of every command that began before clients got LOADING. Otherwise, on a
// writable replica, such a command could write to the keyspace while the new data are loaded.
// Returns false if the server ends.
bool DataReplacer::await_commands(const std::function<void()>& on_piece) {
  if (commands == nullptr) return true;
  constexpr std::chrono::milliseconds kPieceTime{100};
  const auto ended = std::make_shared<std::promise<void>>();
  const std::future<void> end = ended->get_future();
  commands->drain([ended] { ended->set_value(); });
  while (end.wait_for(kPieceTime) != std::future_status::ready) {
    // The wait is given up when the server shuts down. The thread that shuts the server down may
    // wait for this thread, so a longer wait could be a deadlock.
    if (saves.slot.refuses_children() || loader.is_cancelled()) return false;
    on_piece();
  }
  return true;
}

core::Result<> DataReplacer::place_files(const std::string& path, bool has_base) {
  // The log's next base is written while the old data are intact, so a full disk loses nothing.
  if (has_base) {
    auto made = persistence::duplicate_file(parts.files, path, temporary_base());
    if (!made) return made;
  }
  // After this rename, a start without an append log loads the new data. A start with an append log
  // loads the old data until the log has been reopened with the new base.
  auto placed = parts.files.rename(path, writer.snapshot_path());
  if (placed) placed = parts.files.sync_directory(".");
  if (!placed && has_base) (void)parts.files.remove(temporary_base());
  return placed;
}

core::Result<> DataReplacer::replace_claimed(const Replacement& replacement) {
  const bool has_base = log_switch.is_wanted();
  if (auto placed = place_files(replacement.path, has_base); !placed) {
    replacement.on_kept();
    return placed;
  }
  core::keyspace::DetachedTables old;
  log_switch.close_with([&] {
    parts.journal.suspend(true);
    old = parts.keyspace.flush_all();
  });
  old.clear();
  auto loaded = loader.load_for_replica(replacement.on_piece, replacement.is_wanted);
  if (!loaded) lose_data(loaded.error());
  saves.snapshots.record_loaded();
  // If the load was cancelled, memory does not hold all of the new data, so the files must not be
  // replaced.
  const bool keeps_files = !loaded && loader.is_cancelled();
  if (has_base && !keeps_files) log_switch.begin_afresh(!loaded);
  // on_loaded() sets the stream position. It is called last, because a restart must already be able
  // to load the data from which the stream continues.
  if (loaded) {
    replacement.on_loaded();
  } else {
    replacement.on_lost();
  }
  parts.journal.suspend(false);
  return loaded;
}

// Deletes all keys, because the keyspace is only partly loaded.
void DataReplacer::lose_data(const core::Error& reason) {
  delete_all_keys(parts.keyspace);
  if (loader.is_cancelled()) return;
  log_warning("The leader's snapshot could not be loaded, there are no data now: {}",
              reason.message);
  (void)parts.files.remove(writer.snapshot_path());
}

}  // namespace server
