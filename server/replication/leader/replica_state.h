// SPDX-License-Identifier: MIT
//
// ReplicaState: how far a replica has come on its way to the stream.
//
// Thread safety: a value. Source: docs/replication.md, "The leader".
#pragma once

#include <cstdint>

namespace server {

enum class ReplicaState : uint8_t {
  kWaits,      // for a snapshot to begin
  kSnapshot,   // which a child is writing
  kFile,       // which is being sent
  kAwaitsAck,  // the mark was sent: the stream begins when the replica says that it has loaded
  kOnline,
};

}  // namespace server
