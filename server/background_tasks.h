// SPDX-License-Identifier: MIT
//
// BackgroundTasks: work that no command requests. It deletes expired keys, evicts keys while memory
// exceeds maxmemory, and rotates the time windows of filters. It also trims the table of tracked
// keys, which does not change the keyspace.
//
// Invariants: a deleted key is journalled as DEL and reported to all listeners, under the key's
// lock. A window's rotation is also journalled and reported under the key's lock. The keyspace and
// the memory monitor refer to this object while it exists.
// Thread safety: created and destroyed while no command runs; tick() belongs to one thread.
// Source: docs/architecture.md, "The memory limit"; Redis' databasesCron().
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "server/base/process/server_state.h"
#include "server/commands/services.h"
#include "server/dispatch/eviction.h"
#include "server/replication/stream/key_expiry.h"
#include "server/replication/stream/own_expiries.h"
#include "server/replication/stream/window_rotator.h"

namespace server {

class BackgroundTasks {
 public:
  // One tick removes at most this number of tracked keys in excess of tracking-table-max-keys.
  static constexpr size_t kTrimmedKeysMax = 10'000;
  // Posts a task to the thread that calls tick(). The task runs later on that thread.
  using Post = std::function<void(std::function<void()> task)>;

  BackgroundTasks(Services& services, OwnExpiries& own_expiries, Post post, uint64_t seed);
  ~BackgroundTasks();

  // Does the work that is due, in bounded time. Must be called `hz` times a second without a stripe
  // lock.
  void tick();

 private:
  // The caller of the functions below must hold the lock of `key`.
  void on_expired(unsigned database, std::string_view key);
  void on_evicted(unsigned database, std::string_view key);
  void notify_listeners(KeyEvent event, unsigned database, std::string_view key);

  Services& services_;
  Eviction eviction_;
  KeyExpiry expiry_;
  WindowRotator windows_;
};

}  // namespace server
