// SPDX-License-Identifier: MIT
//
// FollowerLog: how much of the applied stream a replica's own append log holds.
//
// Invariants: synced_offset() never exceeds the synced part; it counts bytes of the leader's
// stream, while the log counts its own. With too many marks the last one is merged: the figure is
// then late, never wrong. Thread safety: none; the link's thread uses it. Source:
// docs/replication.md.
#pragma once

#include <cstdint>
#include <deque>

#include "core/result.h"

namespace server {

class Durability;

class FollowerLog {
 public:
  explicit FollowerLog(Durability& durability) : durability_(durability) {}

  // Errors: the log cannot take more writes now.
  core::Result<> takes_more() const;
  // The stream goes on behind `offset`. What was applied before is synced when all that the own log
  // holds now is.
  void begin(int64_t offset);
  // All up to `offset` has been applied, and is in the journal: asks the log to write it.
  void note_applied(int64_t offset);
  // Up to where the applied stream is on the disk, 0 while that is not known; -1 when there is no
  // log that brings it back.
  int64_t synced_offset();

 private:
  // A stream offset, and how long the own log was when it had been applied.
  struct Mark {
    int64_t offset;
    uint64_t log_end;
  };

  Durability& durability_;
  std::deque<Mark> unsynced_;
  int64_t synced_offset_ = 0;
};

}  // namespace server
