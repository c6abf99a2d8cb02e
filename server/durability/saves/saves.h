// SPDX-License-Identifier: MIT
//
// Saves: starts and completes the three kinds of save: snapshots in `dump.rdb`, bases of the append
// log, and snapshots for replicas.
//
// Thread safety: only one thread may call start_what_is_due(). Any thread may call the other
// members.
#pragma once

#include <functional>
#include <memory>

namespace server {

class AppendLog;
class BaseRewriter;
class DataWriter;
class SaveSlot;
class SnapshotSaver;
class TransferSaver;
struct DataParts;
struct SaveMachine;

class Saves {
  // The members are declared first, because the references below refer to them.
  struct Members;
  const std::unique_ptr<Members> members_;

 public:
  Saves(const DataParts& parts, const DataWriter& writer, AppendLog& log,
        const SaveMachine& machine);
  ~Saves();
  Saves(const Saves&) = delete;
  Saves& operator=(const Saves&) = delete;

  SaveSlot& slot;
  SnapshotSaver& snapshots;
  BaseRewriter& rewrites;
  TransferSaver& transfers;

  // If the child has ended, completes the child's save; otherwise reports its progress.
  void poll();
  void start_what_is_due();
  // Waits until the save slot is free, then claims it for SaveTask::kSave and returns true. A child
  // that holds the slot is killed, unless `spares` returns true. Returns false without the slot
  // once `is_over` returns true, which means that the caller's task was cancelled.
  bool claim_from_child(const std::function<bool()>& spares, const std::function<bool()>& is_over);

 private:
  // Reports the progress of the running child. REQUIRES: the caller holds poll_mutex.
  void report();
};

}  // namespace server
