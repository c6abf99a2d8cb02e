// SPDX-License-Identifier: MIT
//
// The part of Durability that makes snapshots for replicas.
#include <utility>

#include "server/durability/durability.h"

namespace server {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

core::Result<> Durability::start_transfer(SnapshotTransfer transfer) {
  if (stream_ == nullptr) return core::Error{"ERR there is no stream"};
  if (refuses_children_) return core::Error{"ERR the server is shutting down"};
  if (!claim(Task::kTransfer)) return core::Error{"ERR another child saves"};
  auto started = [&]() -> core::Result<> {
    const auto stream = hold_stream(Locking::kTake);
    const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
    auto options = write_options(false);
    options.replication = position();
    if (!options.replication) return core::Error{"ERR there is no stream"};
    auto descriptors = transfer.prepare(*options.replication);
    if (!descriptors) return descriptors.error();
    auto child = parts_.start_child(
        parts_.clock,
        [&](SaveChild::Figures& figures) {
          options.on_progress = [&figures](const persistence::RdbProgress& progress) {
            figures.written_bytes = progress.bytes;
            figures.written_keys = progress.keys;
          };
          return transfer.write(options);
        },
        std::move(*descriptors));
    if (!child) {
      transfer.finished(child.error());
      return child.error();
    }
    {
      const std::scoped_lock lock(mutex_);
      transfer_ = std::move(transfer);
    }
    adopt_child(std::move(*child), "transfer");
    return {};
  }();
  if (!started) release();
  return started;
}

}  // namespace server
