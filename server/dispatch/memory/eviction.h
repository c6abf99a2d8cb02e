// SPDX-License-Identifier: MIT
//
// Eviction: deletes keys when maxmemory is exceeded and its policy says so. The thread of the
// client whose command comes next does it, for a bounded time (maxmemory-eviction-tenacity). tick()
// does the rest, between other work.
//
// Freed arrays that a forked child may read count as used, but no eviction could free them. So keys
// are evicted only until the rest keeps the limit.
//
// Invariants: a deletion is journalled as DEL under its stripe's lock and told to watchers. Nothing
// is evicted while data are loaded or writes are held back, nor by a replica that ignores
// maxmemory. A request that no eviction could satisfy is refused before anything is evicted for it.
// Thread safety: all members may be called from any thread, by several at once. A caller of
// make_room(), tick() or go_on() holds no stripe; one of make_room_for() may.
// Source: Redis' evict.c; docs/architecture.md, "The memory limit".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/keyspace/eviction/eviction_pool.h"
#include "core/keyspace/keyspace.h"
#include "server/config/config.h"
#include "server/process/memory_monitor.h"
#include "server/process/server_state.h"

namespace core::keyspace {
class Reclaimer;
}

namespace server {

struct Gauges;

class Eviction final : public RoomMaker {
 public:
  struct Parts {
    const Config& config;
    const core::Clock& clock;
    core::keyspace::Keyspace& keyspace;
    core::keyspace::Reclaimer& reclaimer;
    const ServerState& state;
    // Whether writes are paused now, or held back for another role.
    std::function<bool()> are_writes_held;
    // A key has gone, under its stripe's lock: the place to journal the DEL.
    std::function<void(unsigned database, std::string_view key)> on_evicted;
    // So long has a client, or I/O thread 0, been held up.
    std::function<void(int64_t duration_ms)> on_cycle;
    // Runs a task later, between other work, on the thread of tick().
    std::function<void(std::function<void()>)> post;
    const MemoryMonitor& memory;
    Gauges& gauges;
  };
  Eviction(const Parts& parts, uint64_t seed) : parts_(parts), pool_(parts.keyspace, seed) {}

  bool make_room(uint64_t bytes) override;
  bool make_room_for(uint64_t bytes) override;
  uint64_t obtainable_bytes() const override;
  // Called several times a second. Evicts until the limit is kept, with other work in between:
  // after a lowered limit no client may ask for it.
  void tick();
  // One slice of that. True: call again soon.
  bool go_on();

 private:
  enum class Outcome : uint8_t { kDone, kGoesOn, kFailed };
  struct Order {
    uint64_t extra_bytes;  // that shall be free below the limit
    core::keyspace::StripeWait wait;
  };

  core::keyspace::EvictionPolicy policy() const;
  // Whether maxmemory does not bind this server now, as on a replica that ignores it.
  bool is_exempt() const;
  bool is_held_back() const;
  int64_t time_limit_us() const;
  // Whether used memory and `extra_bytes` more exceed maxmemory.
  bool exceeds_limit(uint64_t extra_bytes) const;
  // Bytes that keys must give up for that.
  uint64_t excess_bytes(uint64_t extra_bytes) const;
  using Databases = std::shared_ptr<const std::vector<unsigned>>;
  // Databases with keys that may go. The list is some milliseconds old, unless it `is_exact`:
  // counting the keys of all databases takes longer than evicting one.
  Databases databases(int64_t now_us, bool is_exact) const;
  Outcome evict(const Order& order);
  // A slice of time, and the keys that were evicted in it or missed.
  struct Slice {
    int64_t start_us;
    int64_t limit_us;
    uint64_t excess_bytes;  // at its start
    uint64_t freed_bytes = 0;
    int keys = 0;
  };
  Outcome evict_until(const core::keyspace::EvictionTerms& terms, uint64_t extra_bytes,
                      Slice& slice);
  // Returns the bytes that the key took; 0 when it is no longer to go.
  uint64_t evict_key(const core::keyspace::EvictionPool::Candidate& candidate,
                     const core::keyspace::EvictionTerms& terms);
  // Has tick() called again, between other work.
  void post_tick();
  void note(Outcome outcome);

  const Parts parts_;
  core::keyspace::EvictionPool pool_;
  mutable std::mutex mutex_;  // guards the three below
  mutable Databases databases_;
  mutable core::keyspace::EvictionPolicy counted_for_{};
  mutable int64_t counted_us_ = 0;
  std::atomic<bool> is_posted_{false};
};

}  // namespace server
