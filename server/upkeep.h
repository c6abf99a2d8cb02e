// SPDX-License-Identifier: MIT
//
// Upkeep: what happens to the keyspace without a command: expired keys go, eviction keeps
// maxmemory, windows of time turn, and the table of tracked keys is trimmed.
//
// Invariants: a key that goes is journalled as DEL and told to all who listen, under its lock; so
// is a window's turn. The keyspace and the memory monitor know this object while it lives.
// Thread safety: made and destroyed while no command runs; tick() belongs to one thread.
// Source: docs/architecture.md, "The memory limit"; Redis' databasesCron().
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "server/commands/services.h"
#include "server/dispatch/memory/eviction.h"
#include "server/process/server_state.h"
#include "server/replication/stream/key_expiry.h"
#include "server/replication/stream/own_expiries.h"
#include "server/replication/stream/window_turner.h"

namespace server {

class Upkeep {
 public:
  // How many keys above tracking-table-max-keys are forgotten at once.
  static constexpr size_t kTrimmedKeysMax = 10'000;
  // Runs a task later, between other work, on the thread of tick().
  using Post = std::function<void(std::function<void()> task)>;

  Upkeep(Services& services, OwnExpiries& own_expiries, Post post, uint64_t seed);
  ~Upkeep();
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  // To be called `hz` times a second with no stripe held; takes a bounded time.
  void tick();

 private:
  // REQUIRES for all: the key's lock.
  void on_expired(unsigned database, std::string_view key);
  void on_evicted(unsigned database, std::string_view key);
  void tell_listeners(KeyEvent event, unsigned database, std::string_view key);

  Services& services_;
  Eviction eviction_;
  KeyExpiry expiry_;
  WindowTurner windows_;
};

}  // namespace server
