// SPDX-License-Identifier: MIT
//
// BaseRewriter: writes a new base of the append log, in a child process or in this process. It does
// so on request, when the log has grown, and when a sync of the log has failed.
//
//   prepare_rotation ─► all stripes: rotate, fork ─► the child writes ─► replace_base
//
// Invariants: from the fork on, the log continues in a new file, so that the new file follows the
// base exactly. After any failure the files on disk are still a complete set. If no log is open, a
// later start with an append log loads the base.
// Thread safety: any thread may call request() and schedule() and read the counters. The other
// functions are called by the thread that has claimed the save slot, or that checks whether a
// rewrite is due.
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

  // Implements BGREWRITEAOF. If the save slot is free, claims it for the next start_if_requested().
  // If another kind of save has claimed the slot, schedules a rewrite. Errors: the error reply.
  core::Result<SaveStart> request();
  void start_if_requested();
  // Schedules a rewrite, which starts when the save slot is free. If `is_wanted` is false, cancels
  // the scheduled rewrite instead.
  void schedule(bool is_wanted) { is_scheduled_ = is_wanted; }
  bool is_scheduled() const { return is_scheduled_; }
  // Starts a rewrite if one is due. Returns whether a rewrite was due, even if it could not be
  // started.
  bool start_if_due();
  // Completes the rewrite after its child has ended. REQUIRES: the save slot is claimed.
  void finish(const SaveEnd& end);

  // Rewrites the log in this process, without a child. REQUIRES: the save slot is claimed, and the
  // log is open.
  core::Result<> rewrite_here();
  // Writes the loaded data as the first base of a new log. Must be called before clients are
  // served.
  core::Result<> write_first_base();

  SaveRecord record() const { return history_.record(); }

 private:
  // Starts a rewrite in a child. REQUIRES: the save slot is claimed.
  void start();
  core::Result<> fork();
  bool is_due();

  const DataParts parts_;
  const DataWriter& writer_;
  SaveSlot& slot_;
  AppendLog& log_;
  SaveHistory history_;
  std::atomic<bool> is_scheduled_{false};
  // True after the save slot was claimed for a requested rewrite.
  std::atomic<bool> is_requested_{false};
  // Only the thread that has claimed the save slot, or that checks whether a rewrite is due, uses
  // the members below. format_ is the format of the base that the child writes.
  persistence::AofBaseFormat format_ = persistence::AofBaseFormat::kRdb;
  int64_t next_us_ = 0;
};

}  // namespace server
