// SPDX-License-Identifier: MIT
#include "server/background_tasks.h"

#include <array>
#include <utility>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "persistence/journal.h"
#include "server/base/process/memory_monitor.h"
#include "server/dispatch/pause_gate.h"
#include "server/session/observer.h"
#include "server/session/pubsub/key_events.h"
#include "server/session/pubsub/tracking.h"

namespace server {
BackgroundTasks::BackgroundTasks(Services& services, OwnExpiries& own_expiries, Post post,
                                 uint64_t seed)
    : services_(services),
      eviction_(
          {services.config, services.clock, services.keyspace, services.reclaimer, services.state,
           [this] { return services_.pause.holds_back(kWrite, services_.clock.wall_ms()); },
           [this](unsigned database, std::string_view key) { on_evicted(database, key); },
           [this](int64_t duration_ms) {
             services_.observer.record_event("eviction-cycle", duration_ms);
           },
           post, services.memory, services.gauges},
          seed),
      expiry_({services.config, services.clock, services.keyspace, services.state, services.pause,
               own_expiries, services.gauges, std::move(post)}),
      windows_({services.clock, services.keyspace, services.reclaimer, services.journal,
                services.state, services.pause, services.memory,
                [this](unsigned database, std::string_view key) {
                  notify_listeners(KeyEvent::kBloomRotation, database, key);
                }}) {
  services_.keyspace.set_hooks(
      [this](unsigned database, std::string_view key) { on_expired(database, key); },
      [this] { services_.tracking.invalidate_all(); });
  services_.memory.set_room_maker(&eviction_);
}

BackgroundTasks::~BackgroundTasks() {
  services_.memory.set_room_maker(nullptr);
  services_.keyspace.set_hooks({});
}

void BackgroundTasks::on_expired(unsigned database, std::string_view key) {
  services_.journal.append(database, std::array<std::string_view, 2>{"DEL", key});
  notify_listeners(KeyEvent::kExpired, database, key);
}

void BackgroundTasks::on_evicted(unsigned database, std::string_view key) {
  // A transaction that needs memory evicts keys, which other clients may write again before the
  // transaction ends. So the DEL is journalled outside the transaction's group.
  services_.journal.append_alone(database, std::array<std::string_view, 2>{"DEL", key});
  notify_listeners(KeyEvent::kEvicted, database, key);
}

void BackgroundTasks::notify_listeners(KeyEvent event, unsigned database, std::string_view key) {
  services_.key_events.notify(event, database, key);
  if (services_.state.listeners.has(ChangeListeners::kTracking)) {
    services_.tracking.invalidate({key, services_.keyspace.ref(key).hash}, {});
  }
}

void BackgroundTasks::tick() {
  services_.pause.end_if_over(services_.clock.wall_ms());
  const int64_t began_us = services_.clock.monotonic_us();
  expiry_.tick();
  services_.observer.record_event("expire-cycle",
                                  (services_.clock.monotonic_us() - began_us) / 1000);
  services_.tracking.trim(kTrimmedKeysMax);
  eviction_.tick();
  windows_.tick();
}

}  // namespace server
