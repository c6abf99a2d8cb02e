// SPDX-License-Identifier: MIT
//
// BaseRewriter: makes a new base for the append log: by a child or in this process, when asked and
// when the log has grown or lost a sync.
//
//   prepare_rotation ─► all stripes: rotate, fork ─► the child writes ─► replace_base
//
// Invariants: the log goes on in a new file from the fork on, so that the base and that file meet
// exactly. Whatever fails, the files on the disk stay a complete set. Without an open log the base
// is what a later start with one finds.
// Thread safety: request(), schedule() and the figures from any thread; the rest by the thread that
// has the task of saving, or looks whether it is due.
// Source: docs/formats.md, "Append log".
#pragma once

#include <atomic>
#include <cstdint>

#include "core/result.h"
#include "persistence/aof/aof_format.h"
#include "server/durability/data/data_parts.h"
#include "server/durability/saves/save_record.h"

namespace server {

class AppendLog;
class DataWriter;
class SaveSlot;
enum class SaveStart : uint8_t;

class BaseRewriter {
 public:
  BaseRewriter(const DataParts& parts, const DataWriter& writer, SaveSlot& slot, AppendLog& log)
      : parts_(parts), writer_(writer), slot_(slot), log_(log) {}

  // BGREWRITEAOF: claims the slot for the next start_if_requested(), or schedules a rewrite.
  core::Result<SaveStart> request();
  void start_if_requested();
  // One begins when no task has the slot.
  void schedule(bool is_wanted) { is_scheduled_ = is_wanted; }
  bool is_scheduled() const { return is_scheduled_; }
  // True when one was due: it has been begun, or has failed.
  bool start_if_due();
  // Its child has ended. REQUIRES: the task is claimed.
  void finish(const SaveEnd& end);

  // Without a child. REQUIRES: the task is claimed, the log is open.
  core::Result<> rewrite_here();
  // Of a log that begins with data it does not hold, before clients are served.
  core::Result<> write_first_base();

  SaveRecord record() const { return history_.record(); }

 private:
  // REQUIRES: the task is claimed.
  void start();
  core::Result<> fork();
  bool is_due();

  const DataParts parts_;
  const DataWriter& writer_;
  SaveSlot& slot_;
  AppendLog& log_;
  SaveHistory history_;
  std::atomic<bool> is_scheduled_{false};
  std::atomic<bool> is_requested_{false};  // and its task claimed
  // Of the thread that has the task, or looks whether one is due.
  persistence::AofBaseFormat format_ = persistence::AofBaseFormat::kRdb;  // of the child's base
  int64_t next_us_ = 0;
};

}  // namespace server
