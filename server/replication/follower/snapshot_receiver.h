// SPDX-License-Identifier: MIT
//
// SnapshotReceiver: finds the end of a leader's snapshot: after the announced size, or at the
// announced mark.
//
//   "$SIZE" and SIZE bytes; or "$EOF:MARK", bytes, MARK (40 characters)
//
// Invariants: the way the bytes are cut makes no difference; no bytes are kept.
// Thread safety: none; one user at a time.
// Source: PSYNC as Redis 7.0 speaks it; docs/replication.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace server {

class SnapshotReceiver {
 public:
  // False when the line announces no snapshot.
  bool announce(std::string_view line);

  // The sizes at the start of the input: bytes of the snapshot, then of the mark, which is not part
  // of it. Both are 0 when more input is needed.
  struct Piece {
    size_t snapshot_bytes = 0;
    size_t mark_bytes = 0;
    bool is_end = false;
  };
  // REQUIRES: announce() was true; the input begins behind what earlier pieces took.
  Piece next(std::string_view input);

  // How much the leader has announced; -1 when it says at the end.
  int64_t size() const { return size_; }
  uint64_t received() const { return received_; }

 private:
  std::string mark_;  // empty when the size is known
  int64_t size_ = -1;
  uint64_t received_ = 0;
};

}  // namespace server
