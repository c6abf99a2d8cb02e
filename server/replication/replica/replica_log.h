// SPDX-License-Identifier: MIT
//
// ReplicaLog: the part of the applied stream that a replica's own append log holds.
//
// A mark pairs an offset of the leader's stream with an offset of the log, because the two count
// different bytes. If there are too many marks, each new mark replaces the last one.
// Invariants: the stream is on disk at least up to synced_offset(). This offset always comes from a
// mark. So if a mark was replaced, more of the stream may be on disk.
// Thread safety: only the thread of the link to the leader may use an object.
// Source: docs/replication.md.
#pragma once

#include <cstdint>
#include <deque>

namespace server {

class Durability;

class ReplicaLog {
 public:
  explicit ReplicaLog(Durability& durability) : durability_(durability) {}

  // Called before commands of the stream are applied from `offset` on. The data before `offset`
  // count as synced once the log has synced all bytes that it has now.
  void begin(int64_t offset);
  // Called when all bytes up to `offset` have been applied and journalled. Asks the log to write
  // them.
  void record_applied(int64_t offset);
  // Returns the offset up to which the applied stream is on disk; 0 if the offset is unknown.
  // Returns -1 if there is no log, or the log cannot restore the data.
  int64_t synced_offset();

 private:
  // `offset` is an offset of the stream. `log_end` is the length of this server's log when the
  // stream was applied up to `offset`.
  struct Mark {
    int64_t offset;
    uint64_t log_end;
  };

  Durability& durability_;
  std::deque<Mark> unsynced_;
  int64_t synced_offset_ = 0;
};

}  // namespace server
