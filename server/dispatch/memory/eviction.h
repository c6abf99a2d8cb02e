// SPDX-License-Identifier: MIT
//
// Eviction: deletes keys when maxmemory is reached and its policy says so, in the thread of the
// client that wants memory, a bounded time at once (maxmemory-eviction-tenacity). What that leaves
// over is done by go_on().
//
// Invariants: a deletion is journalled as DEL under its stripe's lock and told to watchers. Nothing
// is evicted while data are loaded or writes are held back, nor by a replica that ignores
// maxmemory. A request that no eviction could satisfy is refused before anything is evicted for it.
// Thread safety: all members may be called from any thread, by several at once. A caller of
// make_room(), tick() or go_on() holds no stripe; one of make_room_for() may.
// Source: Redis' evict.c; docs/architecture.md, "The memory limit".
#pragma once

#include <cstdint>
#include <functional>
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

  bool make_room() override;
  bool make_room_for(uint64_t bytes) override;
  uint64_t obtainable_bytes() const override;
  // Several times a second: goes on until the limit is kept, with other work in between.
  void tick();
  // What one call has left over, or what nobody asked for: a lowered limit. True: call again soon.
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
  uint64_t excess_bytes(uint64_t extra_bytes) const;
  std::vector<unsigned> databases() const;
  Outcome evict(const Order& order);
  Outcome evict_until(const core::keyspace::EvictionTerms& terms, uint64_t extra_bytes,
                      int64_t deadline_us);
  // The bytes that it has freed, 0 when the key is not to go any more.
  uint64_t evict_key(const core::keyspace::EvictionPool::Candidate& candidate,
                     const core::keyspace::EvictionTerms& terms);
  void note(Outcome outcome);

  const Parts parts_;
  core::keyspace::EvictionPool pool_;
  bool is_posted_ = false;  // by tick(), whose thread's it is
};

}  // namespace server
