// SPDX-License-Identifier: MIT
//
// Eviction: deletes keys if used memory exceeds maxmemory and the eviction policy allows it. The
// thread that runs the next client command evicts keys for a bounded time
// (maxmemory-eviction-tenacity). tick() evicts the remaining keys later, between other work.
//
// Freed arrays that a forked child may still read count as used, but no eviction can free them. So
// keys are evicted only until used memory without these arrays is below the limit.
//
// Invariants: a deletion is journalled as DEL under its stripe's lock, and watchers are notified.
// Nothing is evicted while data are loading or writes are held back, nor by a replica that ignores
// maxmemory. If no eviction could make room for a request, the request is rejected before any key
// is evicted.
// Thread safety: all members may be called from any thread, concurrently. A caller of make_room(),
// tick() or go_on() must hold no stripe lock; a caller of make_room_for() may.
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
#include "core/keyspace/eviction_pool.h"
#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/server_state.h"

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
    // Returns whether writes of clients must wait now, because of a pause or a role change.
    std::function<bool()> are_writes_held;
    // Called for each evicted key under its stripe's lock, to journal the DEL.
    std::function<void(unsigned database, std::string_view key)> on_evicted;
    // Called with the time for which eviction delayed a client or I/O thread 0.
    std::function<void(int64_t duration_ms)> on_cycle;
    // Posts a task, which runs later on the thread of tick(), between other work.
    std::function<void(std::function<void()>)> post;
    const MemoryMonitor& memory;
    Gauges& gauges;
  };
  Eviction(const Parts& parts, uint64_t seed) : parts_(parts), pool_(parts.keyspace, seed) {}

  bool make_room(uint64_t bytes) override;
  bool make_room_for(uint64_t bytes) override;
  uint64_t obtainable_bytes() const override;
  // Called several times a second. Evicts keys until used memory is below maxmemory, in slices
  // between other work. So keys are also evicted if the limit was lowered and no client sends
  // commands.
  void tick();
  // Evicts for one slice of time. Returns true if it must be called again soon.
  bool go_on();

 private:
  enum class Outcome : uint8_t { kDone, kGoesOn, kFailed };
  struct Order {
    uint64_t extra_bytes;  // bytes about to be allocated, for which keys are evicted
    core::keyspace::StripeWait wait;
  };

  core::keyspace::EvictionPolicy policy() const;
  // Returns whether this server ignores maxmemory at present, for example as a replica.
  bool is_exempt() const;
  bool is_held_back() const;
  int64_t time_limit_us() const;
  // Returns whether used memory plus `extra_bytes` exceeds maxmemory.
  bool exceeds_limit(uint64_t extra_bytes) const;
  // Returns how many bytes of keys must be evicted before used memory plus `extra_bytes` is within
  // maxmemory.
  uint64_t excess_bytes(uint64_t extra_bytes) const;
  using Databases = std::shared_ptr<const std::vector<unsigned>>;
  // Returns the databases with keys that can be evicted. The list may be some milliseconds old,
  // unless `is_exact`. Counting the keys of all databases takes longer than evicting one key.
  Databases databases(int64_t now_us, bool is_exact) const;
  Outcome evict(const Order& order);
  // One slice of time in which evict_until() evicts keys, and its progress.
  struct Slice {
    int64_t start_us;
    int64_t limit_us;
    uint64_t excess_bytes;  // used bytes above the limit at the start of the slice
    uint64_t freed_bytes = 0;
    int keys = 0;
  };
  Outcome evict_until(const core::keyspace::EvictionSettings& settings, uint64_t extra_bytes,
                      Slice& slice);
  // Evicts the key. Returns the bytes freed; 0 if the key may no longer be evicted.
  uint64_t evict_key(const core::keyspace::EvictionPool::Candidate& candidate,
                     const core::keyspace::EvictionSettings& settings);
  // Posts a task that continues the eviction, so that the thread can first do its other work.
  void post_tick();
  void record(Outcome outcome);

  const Parts parts_;
  core::keyspace::EvictionPool pool_;
  mutable std::mutex mutex_;  // this mutex guards the members below
  mutable Databases databases_;
  mutable core::keyspace::EvictionPolicy counted_for_{};
  mutable int64_t counted_us_ = 0;
  std::atomic<bool> is_posted_{false};
};

}  // namespace server
