// SPDX-License-Identifier: MIT
#include "server/durability/saves/transfer_saver.h"

#include <string>
#include <utility>

#include "persistence/rdb/rdb_writer.h"
#include "server/durability/data/data_writer.h"
#include "server/durability/saves/save_slot.h"

namespace server {

using core::keyspace::Locking;

core::Result<> TransferSaver::start(SnapshotTransfer transfer) {
  if (slot_.refuses_children()) return core::Error{std::string(kServerIsEnding)};
  if (!slot_.claim(SaveTask::kTransfer)) return core::Error{"ERR another child saves"};
  auto started = fork(transfer);
  if (!started) slot_.release();
  return started;
}

core::Result<> TransferSaver::fork(SnapshotTransfer& transfer) {
  const auto stream = writer_.hold_stream(Locking::kTake);
  const auto stripes = writer_.lock_stripes(Locking::kTake);
  auto options = writer_.options(false);
  options.replication = writer_.position();
  if (!options.replication) return core::Error{"ERR there is no stream"};
  const bool is_exact = transfer.is_exact || options.replication->is_foreign;
  // Checks the machine's free memory before prepare() announces the snapshot to replicas. If memory
  // is short, no snapshot follows.
  if (is_exact && !slot_.exact_child_fits())
    return core::Error{std::string(kNoRoomForExactChild), core::ErrorCode::kOutOfMemory};
  auto descriptors = transfer.prepare(*options.replication);
  if (!descriptors) return descriptors.error();
  finished_ = transfer.finished;
  auto begun = slot_.begin_child(
      [&](SaveFigures& figures) {
        options.on_progress = report_to(figures);
        return transfer.write(options);
      },
      {.purpose = "transfer", .kept = std::move(*descriptors), .is_exact = is_exact});
  if (!begun) transfer.finished(begun);
  return begun;
}

void TransferSaver::cancel() {
  slot_.kill_child(SaveTask::kTransfer);
}

void TransferSaver::finish(const SaveEnd& end) {
  const auto finished = std::exchange(finished_, nullptr);
  slot_.release();
  finished(end.result);
}

}  // namespace server
