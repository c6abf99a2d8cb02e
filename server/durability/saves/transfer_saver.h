// SPDX-License-Identifier: MIT
//
// TransferSaver: writes a snapshot for replicas rather than to `dump.rdb`.
//
// Thread safety: any thread that holds no stripe lock may call start(). The thread that detects the
// end of the child calls finish().
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
  // True if the snapshot must contain no bits that are set after the fork (see save_slot.cpp).
  bool is_exact = false;
  // Called with the snapshot's position in the stream, while no thread can change data. Returns the
  // descriptors that the child needs. Errors: no replica is left to send to.
  std::function<core::Result<std::vector<int>>(const persistence::RdbReplicationInfo&)> prepare;
  // Writes the snapshot. Called in the child.
  std::function<core::Result<>(const persistence::RdbWriteOptions&)> write;
  // If prepare() has succeeded, this function is called once with the result of the save. After a
  // failed fork, it is called while the stream's mutex and all stripes are still locked. Otherwise
  // it is called after the save slot was released.
  std::function<void(const core::Result<>&)> finished;
};

class TransferSaver {
 public:
  TransferSaver(const DataWriter& writer, SaveSlot& slot) : writer_(writer), slot_(slot) {}

  // Forks a child that sends a snapshot. Errors: the server ends, another task has claimed the save
  // slot, there is no stream, memory is short, prepare() failed, or the fork failed. After an
  // error, finished() has been called if and only if prepare() had succeeded.
  core::Result<> start(SnapshotTransfer transfer);
  // Kills the child, if there is one. Its save fails.
  void cancel();
  // Completes a save after its child has ended, and releases the save slot.
  void finish(const SaveEnd& end);

 private:
  core::Result<> fork(SnapshotTransfer& transfer);

  const DataWriter& writer_;
  SaveSlot& slot_;
  // The callback SnapshotTransfer::finished of the save that has claimed the save slot.
  std::function<void(const core::Result<>&)> finished_;
};

}  // namespace server
