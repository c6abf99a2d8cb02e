// SPDX-License-Identifier: MIT
//
// The part of Durability that makes snapshots for replicas, and those that must be exact.
//
// A child shares big arrays and may see bits that are set after the fork. Whoever takes the stream
// behind such a snapshot for effects counts right all the same. Where its commands are judged again
// (another kind of server makes the stream, or reads it), the child first copies what the arrays
// hold, while the parent keeps all stripes: then nothing of what follows is in the snapshot.
#include <string_view>
#include <utility>

#include "core/bloom/array_memory.h"
#include "core/bloom/scalable_filter.h"
#include "server/durability/durability.h"

namespace server {
namespace {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

constexpr std::string_view kNoRoomForExactChild =
    "OOM too little memory is free to copy all filters for a snapshot without later items";

// Runs in the child. What it copies is its own and goes with it.
core::Result<> detach_arrays(const core::keyspace::Keyspace& keyspace) {
  bool fits = true;
  for (unsigned i = 0; i < keyspace.database_count(); ++i) {
    keyspace.for_each(i, [&fits](core::keyspace::Entry& entry) {
      if (fits && entry.is_filter()) fits = entry.filter().detach_from_children();
    });
  }
  if (!fits) return core::Error{std::string(kNoRoomForExactChild)};
  return {};
}

}  // namespace

bool Durability::exact_child_fits() const {
  return core::bloom::ArrayMemory::of_process().resident_bytes() <= parts_.free_bytes();
}

core::Result<std::unique_ptr<SaveChild>> Durability::begin_child(const SaveChild::Work& work,
                                                                 std::vector<int> kept,
                                                                 bool is_exact) {
  const SaveChild::Work detached_work = [&](SaveChild::Figures& figures) -> core::Result<> {
    if (auto detached = detach_arrays(parts_.keyspace); !detached) return detached;
    figures.is_detached = true;
    return work(figures);
  };
  // Counted first: whoever holds what the child sent finds the child counted.
  ++fork_count_;
  auto child = parts_.start_child(parts_.clock, is_exact ? detached_work : work, std::move(kept));
  if (!child) {
    --fork_count_;
    return child;
  }
  if (is_exact) (*child)->await_detached();
  return child;
}

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
    const bool is_exact = transfer.is_exact || options.replication->is_foreign;
    // Before anybody is told that a snapshot comes.
    if (is_exact && !exact_child_fits()) return core::Error{std::string(kNoRoomForExactChild)};
    auto descriptors = transfer.prepare(*options.replication);
    if (!descriptors) return descriptors.error();
    auto child = begin_child(
        [&](SaveChild::Figures& figures) {
          options.on_progress = [&figures](const persistence::RdbProgress& progress) {
            figures.written_bytes = progress.bytes;
            figures.written_keys = progress.keys;
          };
          return transfer.write(options);
        },
        std::move(*descriptors), is_exact);
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
