// SPDX-License-Identifier: MIT
//
// ServerState: state that durability and replication set and every command reads, without a
// dependency on either.
//
// Invariants: each question on the way of every command is one load.
// Thread safety: all members may be used from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/process/availability.h"

namespace server {

// What happened to a key, as those are told who listen. server/pubsub/key_events.cpp has the names.
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
  kBloomTurn,
};

// Who is to be told of keys that commands change, or look for in vain. One load answers that nobody
// is. Who sets a bit lives with commands that have begun before.
class ChangeListeners {
 public:
  enum Kind : uint8_t {
    kOwnChanges = 1U << 0,  // a replica notes what its clients change
    kEvents = 1U << 1,      // keyspace notifications
    kTracking = 1U << 2,    // clients that cache what they have read
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

// CLIENT TRACKING, for INFO.
struct TrackingFigures {
  std::atomic<uint64_t> clients{0};
  std::atomic<uint64_t> prefixes{0};
  std::atomic<uint64_t> keys{0};
  std::atomic<uint64_t> items{0};  // keys, each as often as clients have read it
};

struct ServerState {
  static constexpr size_t kCacheLine = 64;

  Availability availability;
  // Whether this server is a node of a cluster, an emulated one too; stays as it was at the start.
  bool is_in_cluster() const { return availability.has(Availability::kInCluster); }
  // Another server leads: set under all stripes, so a command that holds one sees the role it runs
  // under.
  std::atomic<bool> is_replica{false};
  ChangeListeners listeners;
  TrackingFigures tracking;
  // Whether a child may still read arrays that it shares with this process. False is certain for a
  // thread that holds a stripe, for as long as it does.
  std::atomic<bool> may_have_child{false};
  // Whether keys that expire are deleted before somebody asks for them; DEBUG SET-ACTIVE-EXPIRE.
  std::atomic<bool> expires_actively{true};
  // Whether the periodic tasks stand still; DEBUG PAUSE-CRON.
  std::atomic<bool> is_cron_paused{false};
  // Counts commands that only this kind of server knows, for filters that other servers hold too.
  // Grows before the command is journalled. Replicas of other kinds then need a new snapshot.
  std::atomic<uint64_t> own_words{0};
  // Effective changes since the start; INFO's rdb_changes_since_last_save. Every write changes it,
  // so it shares no cache line with the fields that every command reads.
  alignas(kCacheLine) std::atomic<uint64_t> changes{0};
};

}  // namespace server
