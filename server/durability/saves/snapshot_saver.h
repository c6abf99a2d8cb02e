// SPDX-License-Identifier: MIT
//
// SnapshotSaver: `dump.rdb`: by a child or in this process, when asked and when a save point is
// reached.
//
// Invariants: a failed save leaves the file as it is. A snapshot says where in the replication
// stream it stands, if that is certain.
// Thread safety: all members may be called from any thread; of two threads that save, one gets the
// slot; beside a rewrite they take turns. Those that take Locking must not be called by a thread
// that holds some stripes but not all.
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

  // BGSAVE: forks a child, or notes that one is wanted when another task ends. REQUIRES: the caller
  // holds no stripe.
  core::Result<SaveStart> start(bool may_wait);
  // In EXEC, whose writes have not reached the stream: notes that one is wanted.
  core::Result<SaveStart> schedule();
  // Forks one that is scheduled, or that a save point asks for.
  void start_if_due();
  // Its child has ended. REQUIRES: the task is claimed.
  void finish(const SaveEnd& end);

  // SAVE: in this process, also while the append log is rewritten.
  core::Result<> save(Locking locking);
  // REQUIRES: the task is claimed, or was a rewrite's.
  core::Result<> save_claimed(Locking locking);
  // Besides, the stream is held.
  core::Result<> save_held(Locking locking);

  // The data are those of a file that was loaded.
  void note_loaded();
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
  std::atomic<int64_t> last_save_s_{0};   // since 1970, for clients
  std::atomic<int64_t> last_save_us_{0};  // monotonic, for save points
  std::atomic<uint64_t> changes_at_save_{0};
  std::atomic<int64_t> next_us_{0};  // no save point counts before
};

}  // namespace server
