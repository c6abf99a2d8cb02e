// SPDX-License-Identifier: MIT
//
// TransferSaver: a snapshot that goes to replicas instead of `dump.rdb`.
//
// Thread safety: start() from any thread that holds no stripe; finish() by the one that has found
// the child ended.
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
  // Nothing that is added after the fork may be in it (save_slot.cpp).
  bool is_exact = false;
  // Called while nothing moves, with the place that the snapshot will have in the stream. Returns
  // the descriptors that the child needs. Errors: nobody is left to send to.
  std::function<core::Result<std::vector<int>>(const persistence::RdbReplicationInfo&)> prepare;
  // Writes it; runs in the child.
  std::function<core::Result<>(const persistence::RdbWriteOptions&)> write;
  // Called once after prepare(), with what went wrong; when no other task runs any more.
  std::function<void(const core::Result<>&)> finished;
};

class TransferSaver {
 public:
  TransferSaver(const DataWriter& writer, SaveSlot& slot) : writer_(writer), slot_(slot) {}

  // Forks a child that sends a snapshot. Errors: another child saves, no stream, or the fork; then
  // finished() is not called, unless prepare() was.
  core::Result<> start(SnapshotTransfer transfer);
  // Its child has ended; releases the slot.
  void finish(const SaveEnd& end);

 private:
  core::Result<> fork(SnapshotTransfer& transfer);

  const DataWriter& writer_;
  SaveSlot& slot_;
  std::function<void(const core::Result<>&)> finished_;  // of the task that has the slot
};

}  // namespace server
