// SPDX-License-Identifier: MIT
//
// What the link to a leader works on (FollowerParts), where it leads (FollowTarget), and what is
// shown of it (FollowerFigures).
//
// Thread safety: figures may be used from any thread; the rest are values.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "server/replication/stream/stream_figures.h"

namespace core {
class Clock;
}
namespace persistence {
class FileSystem;
}

namespace server {

class Clients;
class Config;
class Durability;
class Replication;
class Tls;

struct FollowerParts {
  Config& config;
  const core::Clock& clock;
  Durability& durability;
  Replication& replication;
  persistence::FileSystem& files;
  Clients& clients;          // the link is listed among them while it lives
  const Tls* tls = nullptr;  // null: links are never encrypted
};

struct FollowTarget {
  std::string host;
  uint16_t port = 0;
  // The leader shall become our replica (FAILOVER).
  bool takes_over = false;
  bool operator==(const FollowTarget&) const = default;
};

// ROLE's words follow from it.
enum class FollowerState : uint8_t { kNone, kConnect, kConnecting, kHandshake, kSync, kConnected };

struct FollowerFigures {
  std::atomic<FollowerState> state{FollowerState::kNone};
  std::atomic<int64_t> last_received_us{0};  // monotonic
  std::atomic<int64_t> down_since_us{0};     // monotonic; of the link, when it is down
  std::atomic<int64_t> sync_size{-1};        // -1: the leader did not say
  std::atomic<int64_t> sync_received{0};
  std::atomic<int64_t> read_offset{0};
  std::atomic<uint64_t> full_syncs{0};
  std::atomic<uint64_t> partial_syncs{0};
  StreamFigures stream;
};

}  // namespace server
