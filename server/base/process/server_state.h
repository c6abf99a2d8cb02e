// SPDX-License-Identifier: MIT
//
// ServerState: state that durability and replication set, and that every command reads. This file
// includes no header of durability or replication.
//
// Invariants: each check that runs for every command reads only one atomic variable.
// Thread safety: all members may be used from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/base/process/availability.h"

namespace server {

// Events of keys, as published to listeners. The names of the events are in
// server/session/pubsub/key_events.cpp.
enum class KeyEvent : uint8_t {
  kSet,
  kSetRange,
  kSetBit,
  kAppend,
  kIncrBy,
  kIncrByFloat,
  kDel,
  kExpire,
  kPersist,
  kRenameFrom,
  kRenameTo,
  kCopyTo,
  kMoveFrom,
  kMoveTo,
  kRestore,
  kExpired,
  kEvicted,
  kNew,
  kMiss,
  kBloomAdd,
  kBloomReserve,
  kBloomDelete,
  kBloomClear,
  kBloomMerge,
  kBloomLoad,
  kBloomRotation,
};

// The kinds of listeners that exist for changed and missing keys. If there are no listeners, a
// command reads only one atomic variable to check for them. A command that is already running when
// the first listener of a kind is added might not see the new kind.
class ChangeListeners {
 public:
  enum Kind : uint8_t {
    kOwnChanges = 1U << 0,  // this replica must record changes by its own clients
    kEvents = 1U << 1,      // there are listeners to keyspace notifications
    kTracking = 1U << 2,    // there are clients with CLIENT TRACKING
  };

  bool any() const { return kinds_.load(std::memory_order_acquire) != 0; }
  bool has(Kind kind) const { return (kinds_.load(std::memory_order_acquire) & kind) != 0; }
  void set(Kind kind, bool is_listening) {
    if (is_listening) {
      kinds_.fetch_or(kind);
    } else {
      kinds_.fetch_and(static_cast<uint8_t>(~kind));
    }
  }

 private:
  std::atomic<uint8_t> kinds_{0};
};

// The counters of CLIENT TRACKING that INFO shows.
struct TrackingFigures {
  std::atomic<uint64_t> clients{0};
  std::atomic<uint64_t> prefixes{0};
  std::atomic<uint64_t> keys{0};
  std::atomic<uint64_t> items{0};  // number of pairs of a key and a client that has read it
};

struct ServerState {
  static constexpr size_t kCacheLine = 64;

  Availability availability;
  // Returns whether this server is a node of a real or emulated cluster. Constant after startup.
  bool is_in_cluster() const { return availability.has(Availability::kInCluster); }
  // True if this server is a replica. The flag changes only while all stripes are locked, at least
  // in shared mode. So it cannot change while a command holds a stripe exclusively.
  std::atomic<bool> is_replica{false};
  ChangeListeners listeners;
  // Number of executed FLUSHALL commands, including those of a leader's stream and of a log.
  std::atomic<uint64_t> flushes{0};
  TrackingFigures tracking;
  // True while a child process may still read arrays that it shares with this process. If a thread
  // that holds a stripe lock reads false, the value stays false until the lock is released.
  std::atomic<bool> may_have_child{false};
  // Monotonic time at which the server had loaded its data and became ready; 0 before.
  std::atomic<int64_t> ready_us{0};
  // True if expired keys are deleted in the background. DEBUG SET-ACTIVE-EXPIRE sets the flag.
  std::atomic<bool> expires_actively{true};
  // True if the periodic tasks are paused. DEBUG PAUSE-CRON sets the flag.
  std::atomic<bool> is_cron_paused{false};
  // Number of executed commands that only Bloomery supports, on filters that other servers can
  // hold. A replica that is not Bloomery cannot execute such a command, so it then needs a new
  // snapshot. The command is counted before it is journalled.
  std::atomic<uint64_t> own_words{0};
  // The number of effective changes since the start, from which INFO computes
  // rdb_changes_since_last_save. Every write changes it, so it shares no cache line with the fields
  // that every command reads.
  alignas(kCacheLine) std::atomic<uint64_t> changes{0};
};

}  // namespace server
