// SPDX-License-Identifier: MIT
//
// KeyEvents: keyspace notifications. Publishes events of keys, for the classes in
// notify-keyspace-events.
//
// Invariants: events are published under the lock under which the key changed, so that a key's
// messages have the order of its changes. While there are no ChangeListeners, commands do not call
// KeyEvents. While notify-keyspace-events is empty, notify() returns at once.
// Thread safety: all members may be called from any thread.
// Source: redis.io/docs/manual/keyspace-notifications; docs/architecture.md, "Keyspace
// notifications".
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "server/base/process/server_state.h"

namespace server {

class PubSub;

class KeyEvents {
 public:
  KeyEvents(PubSub& pubsub, ChangeListeners& listeners) : pubsub_(pubsub), listeners_(listeners) {}

  // Sets the classes of events to publish. `classes` is a value of notify-keyspace-events.
  void choose(uint32_t classes);
  bool is_on() const { return classes_.load(std::memory_order_relaxed) != 0; }

  void notify(KeyEvent event, unsigned database, std::string_view key) const;

 private:
  PubSub& pubsub_;
  ChangeListeners& listeners_;
  std::atomic<uint32_t> classes_{0};
};

}  // namespace server
