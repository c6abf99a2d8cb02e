// SPDX-License-Identifier: MIT
//
// Defines the states in which a leader sees a replica, from the replica's request for the stream
// until the replica receives the stream. Also defines the acknowledgement that a replica sends.
//
// Thread safety: a value shared by threads needs a lock.
// Source: docs/replication.md, "The leader".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace server {

enum class ReplicaState : uint8_t {
  kWaits,     // the replica waits until the leader starts a snapshot
  kSnapshot,  // a child process is writing the snapshot
  kFile,      // the file with the snapshot is being sent

  // The leader has sent the mark after the end of the snapshot. It sends the stream once the
  // replica has acknowledged that it has loaded the snapshot.
  kAwaitsAck,
  kOnline,
};

// Words that a replica in a cluster adds to REPLCONF ACK while its append log cannot be written.
inline constexpr std::string_view kAckLogOption = "append-log";
inline constexpr std::string_view kAckLogFails = "fails";

struct ReplicaAck {
  uint64_t offset = 0;             // the replica has applied the stream up to this offset
  std::optional<uint64_t> synced;  // the replica has the stream on its disk up to this offset
  bool log_fails = false;          // true if the replica's append log cannot be written
};

}  // namespace server
