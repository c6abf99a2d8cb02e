// SPDX-License-Identifier: MIT
//
// Saves: the three kinds of save, one at a time, and the code that begins and ends them.
//
// Thread safety: all members may be called from any thread; start_what_is_due() from one.
#pragma once

#include <functional>
#include <memory>

#include "server/durability/data/data_parts.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/snapshot_saver.h"
#include "server/durability/saves/transfer_saver.h"
#include "server/process/ordered_mutex.h"

namespace server {

class AppendLog;
class DataWriter;
class WorkReport;

class Saves {
 public:
  Saves(const DataParts& parts, const DataWriter& writer, AppendLog& log,
        SaveSlot::Machine machine);
  ~Saves();
  Saves(const Saves&) = delete;
  Saves& operator=(const Saves&) = delete;

  SaveSlot& slot() { return slot_; }
  const SaveSlot& slot() const { return slot_; }
  SnapshotSaver& snapshots() { return snapshots_; }
  const SnapshotSaver& snapshots() const { return snapshots_; }
  BaseRewriter& rewrites() { return rewrites_; }
  const BaseRewriter& rewrites() const { return rewrites_; }
  TransferSaver& transfers() { return transfers_; }

  // If the child has ended, puts its file in place; else tells how far it is.
  void poll();
  void start_what_is_due();
  // Claims SaveTask::kSave from a child, which is stopped unless `spares` it. False when `is_over`
  // says that it is not wanted any more.
  bool claim_from_child(const std::function<bool()>& spares, const std::function<bool()>& is_over);

 private:
  // REQUIRES: poll_mutex_.
  void report();

  const core::Clock& clock_;
  SaveSlot slot_;
  SnapshotSaver snapshots_;
  BaseRewriter rewrites_;
  TransferSaver transfers_;
  OrderedMutex poll_mutex_{LockRank::kChildEnd};  // one thread deals with an ended child
  std::unique_ptr<WorkReport> report_;            // under poll_mutex_, while there is a child
};

}  // namespace server
