// SPDX-License-Identifier: MIT
//
// KeyEvents: keyspace notifications. Publishes what happens to keys, for the classes that
// notify-keyspace-events names.
//
// Invariants: told under the lock under which the key changed, so that the messages of a key come
// in the order of its changes. While no class is chosen, commands do not ask: see ChangeListeners.
// Thread safety: all members may be called from any thread.
// Source: redis.io/docs/manual/keyspace-notifications; docs/architecture.md, "Keyspace
// notifications".
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "server/process/server_state.h"

namespace server {

class PubSub;

class KeyEvents {
 public:
  KeyEvents(PubSub& pubsub, ChangeListeners& listeners) : pubsub_(pubsub), listeners_(listeners) {}

  // The classes that are published from now on: a value of notify-keyspace-events.
  void choose(uint32_t classes);
  bool is_on() const { return classes_.load(std::memory_order_relaxed) != 0; }

  void tell(KeyEvent event, unsigned database, std::string_view key) const;

 private:
  PubSub& pubsub_;
  ChangeListeners& listeners_;
  std::atomic<uint32_t> classes_{0};
};

}  // namespace server
