// SPDX-License-Identifier: MIT
//
// Defines the types that the parts of the link to a leader share: its dependencies (ReplicaParts),
// its target (FollowTarget), and its state and counters (ReplicaFigures).
//
// Thread safety: any thread may read ReplicaFigures. The other types are values, which need a lock
// if threads share them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "server/replication/stream/replication_parts.h"
#include "server/replication/stream/stream_figures.h"

namespace server {

class Clients;
class Replication;
class Tls;

struct ReplicaParts : ReplicationParts {
  Replication& replication;
  Clients& clients;          // all connections, for CLIENT LIST; includes the link to the leader
  const Tls* tls = nullptr;  // settings of TLS; null if links are never encrypted
};

struct FollowTarget {
  std::string host;
  uint16_t port = 0;
  // True to ask the leader to become a replica of this server (FAILOVER).
  bool takes_over = false;
  bool operator==(const FollowTarget&) const = default;
};

// The state of the link to the leader, which ROLE shows.
enum class ReplicaLinkState : uint8_t {
  kNone,
  kConnect,
  kConnecting,
  kHandshake,
  kSync,
  kConnected
};

struct ReplicaFigures {
  std::atomic<ReplicaLinkState> state{ReplicaLinkState::kNone};
  std::atomic<int64_t> last_received_us{0};  // monotonic time of the last bytes from the leader

  // Monotonic time at which the link went down; valid only while the link is down.
  std::atomic<int64_t> down_since_us{0};
  // Size of the snapshot in bytes; -1 if the leader did not announce it.
  std::atomic<int64_t> sync_size{-1};
  std::atomic<int64_t> sync_received{0};
  std::atomic<int64_t> read_offset{0};
  std::atomic<uint64_t> full_syncs{0};
  std::atomic<uint64_t> partial_syncs{0};
  StreamFigures stream;
};

}  // namespace server
