// SPDX-License-Identifier: MIT
//
// ReplicaLog: the part of the applied stream that a replica's own append log holds.
//
// A mark pairs an offset of the leader's stream with an offset of the log, because the two count
// different bytes. If there are too many marks, each new mark replaces the last one.
// Invariants: synced_offset() never exceeds the part of the stream that is on disk. It may be less
// than this part if marks are missing because newer marks have replaced them.
// Thread safety: only the thread of the link to the leader may use an object.
// Source: docs/replication.md.
#pragma once

#include <cstdint>
#include <deque>

#include "core/result.h"

namespace server {

class Durability;

class ReplicaLog {
 public:
  explicit ReplicaLog(Durability& durability) : durability_(durability) {}

  // Checks that the log accepts more data. Errors: the log cannot be written at present.
  core::Result<> takes_more() const;
  // Called when the stream continues at `offset`. The earlier data count as synced once the bytes
  // that the log has now are synced.
  void begin(int64_t offset);
  // Called when all bytes up to `offset` have been applied and journalled. Asks the log to write
  // them.
  void record_applied(int64_t offset);
  // Returns the offset up to which the applied stream is on disk; 0 if the offset is unknown.
  // Returns -1 if there is no log, or the log cannot restore the data.
  int64_t synced_offset();

 private:
  // A stream offset, and the length of this server's log once the stream was applied up to it.
  struct Mark {
    int64_t offset;
    uint64_t log_end;
  };

  Durability& durability_;
  std::deque<Mark> unsynced_;
  int64_t synced_offset_ = 0;
};

}  // namespace server
