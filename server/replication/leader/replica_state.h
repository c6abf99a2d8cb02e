// SPDX-License-Identifier: MIT
//
// ReplicaState: the states of a replica, from its request for the stream until it receives the
// stream.
//
// Thread safety: a value shared by threads needs a lock.
// Source: docs/replication.md, "The leader".
#pragma once

#include <cstdint>

namespace server {

enum class ReplicaState : uint8_t {
  kWaits,     // the replica waits until the leader starts a snapshot
  kSnapshot,  // a child process is writing the snapshot
  kFile,      // the file with the snapshot is being sent

  // The end mark was sent. The stream begins when the replica has acknowledged that it loaded the
  // snapshot.
  kAwaitsAck,
  kOnline,
};

}  // namespace server
