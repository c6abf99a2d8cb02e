// SPDX-License-Identifier: MIT
//
// SaveSlot: the exclusive right to save, which one task at a time can claim, and the child that the
// task may have forked.
//
//   claim() ──► begin_child() ──► take_ended() ──► release()
//
// Invariants: at most one child saves. A thread that holds a stripe and finds
// ServerState::may_have_child false shares no array with a child.
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/base/process/ordered_mutex.h"
#include "server/durability/data/data_parts.h"
#include "server/durability/saves/save_progress.h"
#include "server/durability/saves/save_record.h"
#include "server/durability/saves/save_work.h"

namespace persistence {
struct RdbProgress;
}

namespace server {

class AppendLog;
class SaveChild;
struct SaveMachine;

enum class SaveTask : uint8_t { kNone, kSave, kRewrite, kTransfer };
enum class SaveStart : uint8_t { kStarted, kScheduled };

inline constexpr std::string_view kServerIsEnding = "ERR the server is shutting down";
// The message of the error, with the code kOutOfMemory, if too little memory is free for a child
// that copies all filters.
inline constexpr std::string_view kNoRoomForExactChild =
    "OOM too little memory is free to copy all filters for a snapshot without later items";

// Returns a function that reports a child's progress to its parent.
std::function<void(const persistence::RdbProgress&)> report_to(SaveFigures& figures);

class SaveSlot {
 public:
  SaveSlot(const DataParts& parts, AppendLog& log, const SaveMachine& machine);
  ~SaveSlot();

  // Claims the slot. Returns false if another task has claimed it.
  bool claim(SaveTask task);
  void release();
  SaveTask task() const { return task_; }
  // If `refused` is true, no new child may start until this function is called with false.
  void refuse_children(bool refused) { refuses_children_ = refused; }
  bool refuses_children() const { return refuses_children_; }

  struct Beginning {
    std::string_view purpose;  // name of the save, for log lines
    std::vector<int> kept{};   // descriptors that the child keeps open

    // True if the snapshot must be exact. begin_child() then returns only when the child no longer
    // shares arrays with this process.
    bool is_exact = false;
  };
  // Returns whether the machine has enough free memory for an exact child, which copies all arrays.
  bool exact_child_fits() const;
  // Forks a child for the task that has claimed the slot. REQUIRES: all stripes are locked. Errors:
  // the fork failed.
  core::Result<> begin_child(const SaveWork& work, Beginning beginning);
  bool has_child() const;
  void kill_child();
  // Kills the child if it works for this task.
  void kill_child(SaveTask task);
  // Kills a child that writes a snapshot with keys that FLUSHALL has deleted since the fork.
  void kill_outdated_child();
  // Returns the child's result and statistics after the child has exited, otherwise nullopt. Each
  // result is returned only once. The slot stays claimed.
  std::optional<SaveEnd> take_ended();

  // Returns the progress of the running child, for INFO.
  SaveProgress progress() const;
  int64_t last_fork_us() const { return last_fork_us_; }
  uint64_t fork_count() const { return fork_count_; }

 private:
  const DataParts parts_;
  AppendLog& log_;
  const std::unique_ptr<const SaveMachine> machine_;
  std::atomic<SaveTask> task_{SaveTask::kNone};
  std::atomic<bool> refuses_children_{false};
  std::atomic<int64_t> last_fork_us_{0};
  std::atomic<uint64_t> fork_count_{0};

  mutable OrderedMutex mutex_{LockRank::kSaves};  // this mutex guards the members below
  std::unique_ptr<SaveChild> child_;
  uint64_t keys_at_fork_ = 0;
  uint64_t bytes_at_fork_ = 0;
  uint64_t changes_at_fork_ = 0;
  uint64_t flushes_at_fork_ = 0;
};

}  // namespace server
