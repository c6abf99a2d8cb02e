// SPDX-License-Identifier: MIT
#include "core/keyspace/watch.h"

#include <algorithm>

namespace core::keyspace {

bool WatchTable::add(unsigned database, std::string_view key, WatchFlagPtr flag, bool was_expired) {
  auto row = rows_.find(KeyView(database, key));
  if (row == rows_.end()) row = rows_.try_emplace(Key(database, key)).first;
  auto& watchers = row->second;
  const bool known = std::any_of(watchers.begin(), watchers.end(),
                                 [&](const Watcher& watcher) { return watcher.flag == flag; });
  if (!known) watchers.push_back({std::move(flag), was_expired});
  return !known;
}

void WatchTable::remove(unsigned database, std::string_view key, const WatchFlagPtr& flag) {
  const auto row = rows_.find(KeyView(database, key));
  if (row == rows_.end()) return;
  std::erase_if(row->second, [&](const Watcher& watcher) { return watcher.flag == flag; });
  if (row->second.empty()) rows_.erase(row);
}

void WatchTable::mark_modified(unsigned database, std::string_view key) {
  const auto row = rows_.find(KeyView(database, key));
  if (row == rows_.end()) return;
  for (const Watcher& watcher : row->second) {
    watcher.flag->dirty.store(true, std::memory_order_release);
  }
}

void WatchTable::mark_expired(unsigned database, std::string_view key) {
  const auto row = rows_.find(KeyView(database, key));
  if (row == rows_.end()) return;
  for (Watcher& watcher : row->second) {
    // For a watcher that saw the key as expired, the deletion of the key is no change. A later
    // write is a change.
    if (!watcher.was_expired) watcher.flag->dirty.store(true, std::memory_order_release);
    watcher.was_expired = false;
  }
}

void WatchTable::mark_swapped(unsigned database, std::string_view key, Swapped swapped) {
  const auto row = rows_.find(KeyView(database, key));
  if (row == rows_.end()) return;
  for (Watcher& watcher : row->second) {
    const bool was_absent = watcher.was_expired || !swapped.is_there_before;
    const bool is_absent = swapped.is_stale_after || !swapped.is_there_after;
    if (was_absent && is_absent) {
      watcher.was_expired = swapped.is_stale_after;
    } else {
      watcher.flag->dirty.store(true, std::memory_order_release);
    }
  }
}

bool WatchTable::watches_alive(unsigned database, std::string_view key,
                               const WatchFlagPtr& flag) const {
  const auto row = rows_.find(KeyView(database, key));
  if (row == rows_.end()) return false;
  return std::any_of(row->second.begin(), row->second.end(), [&](const Watcher& watcher) {
    return watcher.flag == flag && !watcher.was_expired;
  });
}

}  // namespace core::keyspace
