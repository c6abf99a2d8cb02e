// SPDX-License-Identifier: MIT
#include "server/replication/replica/snapshot_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.h"
#include "server/base/metrics/work_report.h"

namespace server {
namespace {

const core::SystemClock kArrivalClock;

}  // namespace

SnapshotSpace::SnapshotSpace(persistence::FileSystem& files, std::string directory)
    : files_(files),
      directory_(std::move(directory)),
      report_(std::make_unique<WorkReport>("Receiving the leader's snapshot", kArrivalClock)) {}

SnapshotSpace::~SnapshotSpace() = default;

core::Result<> SnapshotSpace::check(uint64_t received_bytes, int64_t announced_bytes) {
  // A sixteenth of the device must remain free. On big devices 1 GiB suffices.
  constexpr uint64_t kKeptBytesMax = uint64_t{1} << 30;
  constexpr uint64_t kKeptShare = 16;
  if (received_bytes < next_bytes_) return {};
  constexpr uint64_t kMegabyte = 1'000'000;
  const double share = announced_bytes > 0 ? double(received_bytes) / double(announced_bytes) : -1;
  report_->show(share, [&] {
    const std::string total =
        announced_bytes > 0 ? fmt::format(" of {}", announced_bytes / int64_t{kMegabyte}) : "";
    return fmt::format("{}{} MB", received_bytes / kMegabyte, total);
  });
  next_bytes_ = received_bytes + kStepBytes;
  const auto space = files_.space(directory_);
  if (!space) return {};
  const uint64_t announced = announced_bytes < 0 ? 0 : static_cast<uint64_t>(announced_bytes);
  const uint64_t left = std::max(announced, received_bytes) - received_bytes;
  const uint64_t kept = std::min(space->total_bytes / kKeptShare, kKeptBytesMax);
  if (left <= space->free_bytes && kept <= space->free_bytes - left) return {};
  return core::Error{
      fmt::format("the leader's snapshot does not fit on the disk: {} bytes received, {} "
                  "announced, {} free, of which {} must stay so",
                  received_bytes, announced_bytes, space->free_bytes, kept)};
}

}  // namespace server
