// SPDX-License-Identifier: MIT
#include "server/replication/replica/snapshot_receiver.h"

#include <algorithm>

#include "core/number.h"

namespace server {
namespace {

constexpr size_t kMarkBytes = 40;
constexpr std::string_view kMarkPrefix = "$EOF:";
// An announced size must be below this limit, which is more than any disk holds.
constexpr int64_t kSizeEnd = int64_t{1} << 62;

}  // namespace

bool SnapshotReceiver::announce(std::string_view line) {
  if (line.starts_with(kMarkPrefix) && line.size() == kMarkPrefix.size() + kMarkBytes) {
    mark_ = line.substr(kMarkPrefix.size());
    return true;
  }
  if (!line.starts_with('$')) return false;
  const auto size = core::parse_int64(line.substr(1));
  if (!size || *size < 0 || *size >= kSizeEnd) return false;
  size_ = *size;
  return true;
}

SnapshotReceiver::Piece SnapshotReceiver::next(std::string_view input) {
  Piece piece;
  if (mark_.empty()) {
    const uint64_t left = static_cast<uint64_t>(size_) - received_;
    piece.is_end = left == 0;
    piece.snapshot_bytes = std::min<uint64_t>(input.size(), left);
  } else if (const size_t found = input.find(mark_); found == 0) {
    piece.mark_bytes = mark_.size();
    piece.is_end = true;
  } else if (found != std::string_view::npos) {
    piece.snapshot_bytes = found;
  } else {
    // The bytes at the end of the input may be the start of the end mark, so they are kept until
    // more bytes arrive.
    const size_t kept = std::min(input.size(), mark_.size() - 1);
    piece.snapshot_bytes = input.size() - kept;
  }
  received_ += piece.snapshot_bytes;
  return piece;
}

}  // namespace server
