// SPDX-License-Identifier: MIT
//
// SnapshotSaver: writes `dump.rdb`, in a child process or in this process, on request and when a
// save point is reached.
//
// Invariants: a failed save leaves the file as it is. A snapshot states its position in the
// replication stream only if a server that loads it can continue the stream from that position.
// Thread safety: all members may be called from any thread. If two threads save at the same time,
// one claims the save slot, and the other gets an error. A save during a rewrite does not claim the
// slot: the stream's mutex serializes such saves. A thread that calls a function with a Locking
// parameter must hold either no stripe lock or all of them.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/keyspace/locking.h"
#include "core/result.h"
#include "server/durability/data/data_parts.h"
#include "server/durability/saves/save_record.h"

namespace server {

class DataWriter;
class SaveSlot;
enum class SaveStart : uint8_t;

class SnapshotSaver {
 public:
  using Locking = core::keyspace::Locking;

  SnapshotSaver(const DataParts& parts, const DataWriter& writer, SaveSlot& slot)
      : parts_(parts), writer_(writer), slot_(slot) {}

  // Implements BGSAVE: forks a child. If a task other than a save has claimed the save slot and
  // `may_wait` is true, the child is forked when that task ends. REQUIRES: the caller holds no
  // stripe lock.
  core::Result<SaveStart> start(bool may_wait);
  // Implements BGSAVE inside EXEC: only records the request. start_if_due() forks the child after
  // EXEC. A child forked during EXEC would save writes of the transaction that have not reached the
  // replication stream.
  core::Result<SaveStart> schedule();
  // Forks a child if one is scheduled or a save point is reached. If save points are configured,
  // also retries a failed save.
  void start_if_due();
  // Completes a save after its child has ended. REQUIRES: the save slot is claimed.
  void finish(const SaveEnd& end);

  // Implements SAVE: saves in this process, also during a rewrite of the append log.
  core::Result<> save(Locking locking);
  // Saves in this process. REQUIRES: the save slot is claimed, either by the caller or by a
  // rewrite.
  core::Result<> save_claimed(Locking locking);
  // Does the same as save_claimed(), but does not lock the stream's mutex. REQUIRES: the save slot
  // is claimed, and the caller holds the stream's mutex.
  core::Result<> save_held(Locking locking);

  // Returns whether save points are configured, and the snapshot on disk has keys that FLUSHALL has
  // deleted. A save is then due. Without it, a crash would bring the keys back.
  bool owes_flush() const;
  // Called when the data were loaded from files. Save points count time and changes from this call.
  void record_loaded();
  SaveRecord record() const { return history_.record(); }
  int64_t last_save_s() const { return last_save_s_; }
  uint64_t changes_since_save() const;

 private:
  core::Result<> fork();
  bool is_due() const;
  void record_time_of_save();

  const DataParts parts_;
  const DataWriter& writer_;
  SaveSlot& slot_;
  SaveHistory history_;
  std::atomic<bool> is_scheduled_{false};
  // Unix time of the last save in seconds, which is shown to clients.
  std::atomic<int64_t> last_save_s_{0};
  // Monotonic time of the last save, from which save points count.
  std::atomic<int64_t> last_save_us_{0};
  std::atomic<uint64_t> changes_at_save_{0};
  std::atomic<int64_t> next_us_{0};         // no save is due before this time
  std::atomic<uint64_t> flushes_saved_{0};  // FLUSHALL commands before the last save
};

}  // namespace server
