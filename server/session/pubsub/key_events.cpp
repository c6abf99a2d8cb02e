// SPDX-License-Identifier: MIT
#include "server/session/pubsub/key_events.h"

#include <fmt/format.h>

#include <string_view>

#include "server/base/config/event_class.h"
#include "server/session/pubsub/pub_sub.h"

namespace server {
namespace {

// Events of filters belong to two classes: generic (g), as in valkey-bloom, and module (d), as for
// modules of Redis.
constexpr uint32_t kBloomEvents = kGenericEvents | kModuleEvents;

struct EventRow {
  KeyEvent event;
  std::string_view name;
  uint32_t classes;
};

// The rows are in the order of KeyEvent. valkey-bloom also publishes the first two events of
// filters.
constexpr EventRow kEvents[] = {
    {KeyEvent::kSet, "set", kStringEvents},
    {KeyEvent::kSetRange, "setrange", kStringEvents},
    {KeyEvent::kSetBit, "setbit", kStringEvents},
    {KeyEvent::kAppend, "append", kStringEvents},
    {KeyEvent::kIncrBy, "incrby", kStringEvents},
    {KeyEvent::kIncrByFloat, "incrbyfloat", kStringEvents},
    {KeyEvent::kDel, "del", kGenericEvents},
    {KeyEvent::kExpire, "expire", kGenericEvents},
    {KeyEvent::kPersist, "persist", kGenericEvents},
    {KeyEvent::kRenameFrom, "rename_from", kGenericEvents},
    {KeyEvent::kRenameTo, "rename_to", kGenericEvents},
    {KeyEvent::kCopyTo, "copy_to", kGenericEvents},
    {KeyEvent::kMoveFrom, "move_from", kGenericEvents},
    {KeyEvent::kMoveTo, "move_to", kGenericEvents},
    {KeyEvent::kRestore, "restore", kGenericEvents},
    {KeyEvent::kExpired, "expired", kExpiredEvents},
    {KeyEvent::kEvicted, "evicted", kEvictedEvents},
    {KeyEvent::kNew, "new", kNewEvents},
    {KeyEvent::kMiss, "keymiss", kMissEvents},
    {KeyEvent::kBloomAdd, "bloom.add", kBloomEvents},
    {KeyEvent::kBloomReserve, "bloom.reserve", kBloomEvents},
    {KeyEvent::kBloomDelete, "bloom.del", kBloomEvents},
    {KeyEvent::kBloomClear, "bloom.clear", kBloomEvents},
    {KeyEvent::kBloomMerge, "bloom.merge", kBloomEvents},
    {KeyEvent::kBloomLoad, "bloom.load", kBloomEvents},
    {KeyEvent::kBloomRotation, "bloom.turn", kBloomEvents},
};

consteval bool are_in_order() {
  for (size_t i = 0; i < std::size(kEvents); ++i) {
    if (static_cast<size_t>(kEvents[i].event) != i) return false;
  }
  return true;
}
static_assert(are_in_order());

}  // namespace

void KeyEvents::choose(uint32_t classes) {
  constexpr uint32_t kChannels = kEventsByKey | kEventsByEvent;
  // Events are published only if the option selects at least one kind of channel (K or E) and at
  // least one class of events.
  const bool any = (classes & kChannels) != 0 && (classes & ~kChannels) != 0;
  classes_.store(any ? classes : 0, std::memory_order_relaxed);
  listeners_.set(ChangeListeners::kEvents, any);
}

void KeyEvents::notify(KeyEvent event, unsigned database, std::string_view key) const {
  const EventRow& row = kEvents[static_cast<size_t>(event)];
  const uint32_t classes = classes_.load(std::memory_order_relaxed);
  if ((classes & row.classes) == 0 || !pubsub_.has_listeners()) return;
  const auto send = [&](std::string_view channel, std::string_view payload) {
    pubsub_.publish(SubscriptionKind::kChannel, channel, payload);
  };
  // The key is appended rather than formatted, because it may contain any bytes.
  if ((classes & kEventsByKey) != 0) {
    send(fmt::format("__keyspace@{}__:", database).append(key), row.name);
  }
  if ((classes & kEventsByEvent) != 0) {
    send(fmt::format("__keyevent@{}__:", database).append(row.name), key);
  }
}

}  // namespace server
