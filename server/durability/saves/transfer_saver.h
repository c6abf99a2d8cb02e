// SPDX-License-Identifier: MIT
//
// TransferSaver: writes a snapshot for replicas rather than to `dump.rdb`.
//
// Thread safety: start() from any thread that holds no stripe lock; finish() by the thread that
// found the child ended.
#pragma once

#include <functional>
#include <vector>

#include "core/result.h"

namespace persistence {
struct RdbReplicationInfo;
struct RdbWriteOptions;
}  // namespace persistence

namespace server {

class DataWriter;
class SaveSlot;
struct SaveEnd;

struct SnapshotTransfer {
  // The snapshot must contain nothing that is added after the fork (see save_slot.cpp).
  bool is_exact = false;
  // Called while nothing changes, with the snapshot's position in the stream. Returns the
  // descriptors that the child needs. Errors: no replica is left to send to.
  std::function<core::Result<std::vector<int>>(const persistence::RdbReplicationInfo&)> prepare;
  // Writes the snapshot. Runs in the child.
  std::function<core::Result<>(const persistence::RdbWriteOptions&)> write;
  // Called once after prepare(), with the result, when no other task is running.
  std::function<void(const core::Result<>&)> finished;
};

class TransferSaver {
 public:
  TransferSaver(const DataWriter& writer, SaveSlot& slot) : writer_(writer), slot_(slot) {}

  // Forks a child that sends a snapshot. Errors: another child saves, there is no stream, or the
  // fork failed. finished() is then called only if prepare() was.
  core::Result<> start(SnapshotTransfer transfer);
  // Called when the child has ended. Releases the slot.
  void finish(const SaveEnd& end);

 private:
  core::Result<> fork(SnapshotTransfer& transfer);

  const DataWriter& writer_;
  SaveSlot& slot_;
  // Callback of the task that claimed the slot.
  std::function<void(const core::Result<>&)> finished_;
};

}  // namespace server
