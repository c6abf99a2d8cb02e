// SPDX-License-Identifier: MIT
//
// SnapshotReceiver: finds the end of a leader's snapshot, which the leader announces as a size or
// as an end mark.
//
//   "$SIZE" and SIZE bytes; or "$EOF:MARK", bytes, MARK (40 characters)
//
// Invariants: the result does not depend on how the received bytes are split; no bytes are kept.
// Thread safety: one thread at a time may use an object.
// Source: PSYNC of Redis 7.0; docs/replication.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace server {

class SnapshotReceiver {
 public:
  // Reads the line that announces a snapshot. Returns false if it does not announce one.
  bool announce(std::string_view line);

  // The input begins with `snapshot_bytes` bytes of the snapshot, followed by `mark_bytes` bytes of
  // the end mark. If both numbers are 0 and `is_end` is false, more input is needed.
  struct Piece {
    size_t snapshot_bytes = 0;
    size_t mark_bytes = 0;
    bool is_end = false;
  };
  // Measures the next piece of the input. REQUIRES: announce() has returned true; the input begins
  // after the bytes of earlier pieces.
  Piece next(std::string_view input);

  // Returns the size that the leader announced; -1 if the snapshot ends with an end mark.
  int64_t size() const { return size_; }
  uint64_t received() const { return received_; }

 private:
  std::string mark_;  // the announced end mark; empty if the size is known
  int64_t size_ = -1;
  uint64_t received_ = 0;
};

}  // namespace server
