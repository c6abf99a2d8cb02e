// SPDX-License-Identifier: MIT
#include "server/replication/stream/own_expiries.h"

#include <vector>

#include "core/keyspace/keyspace.h"

namespace server {
namespace {

constexpr size_t kKeysPerTickMax = 1000;
constexpr size_t kKeysMax = 1'000'000;

}  // namespace

void OwnExpiries::record(unsigned database, std::string_view key) {
  const std::scoped_lock lock(mutex_);
  if (keys_.size() < kKeysMax) keys_.emplace(database, key);
}

bool OwnExpiries::tick(core::keyspace::Keyspace& keyspace, int64_t now_ms) {
  std::vector<Key> round;
  bool is_at_end = false;
  {
    const std::scoped_lock lock(mutex_);
    auto next = keys_.upper_bound(cursor_);
    for (; next != keys_.end() && round.size() < kKeysPerTickMax; ++next) round.push_back(*next);
    is_at_end = next == keys_.end();
    cursor_ = is_at_end ? Key() : round.back();
  }
  for (const Key& key : round) {
    const auto& [database, name] = key;
    const auto ref = keyspace.ref(name);
    // While the key's stripe is locked, no client can change the key, so record() is not called for
    // this key.
    const auto stripe = keyspace.lock_exclusive(ref);
    const auto* entry = keyspace.find_any(database, ref);
    if (entry != nullptr && entry->has_expiry() && !entry->expired(now_ms)) continue;
    {
      const std::scoped_lock lock(mutex_);
      // If clear() was called after the key was chosen, the leader is responsible for the key
      // again, so the key is not deleted.
      if (keys_.erase(key) == 0) continue;
    }
    if (entry != nullptr && entry->has_expiry()) keyspace.expire(database, ref);
  }
  return is_at_end;
}

}  // namespace server
