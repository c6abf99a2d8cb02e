// SPDX-License-Identifier: MIT
//
// ReplicaState: the steps of a replica from its request to the stream.
//
// Thread safety: a value.
// Source: docs/replication.md, "The leader".
#pragma once

#include <cstdint>

namespace server {

enum class ReplicaState : uint8_t {
  kWaits,     // a snapshot must start
  kSnapshot,  // a child is writing the snapshot
  kFile,      // the snapshot's file is being sent
  // the end mark was sent; the stream begins when the replica has acknowledged that it loaded the
  // snapshot
  kAwaitsAck,
  kOnline,
};

}  // namespace server
