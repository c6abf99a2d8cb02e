// SPDX-License-Identifier: MIT
//
// OwnExpiries: keys that clients wrote on a writable replica. The leader does not know them and so
// never says that they have expired: the replica deletes them itself.
//
// Invariants: a key is remembered from its change until it is gone, has no expiry, or has expired.
// No more than a million are; the others stay hidden from readers once they have expired.
// One that the leader's stream has written since expires here, too, as in Redis.
// Thread safety: all members may be called from any thread. tick() takes stripe locks: call it with
// none held.
// Source: Redis' expireSlaveKeys().
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace core::keyspace {
class Keyspace;
}

namespace server {

class OwnExpiries {
 public:
  // A client has changed the key.
  void note(unsigned database, std::string_view key);
  // The role has changed, or all data came anew.
  void clear();
  // Deletes what has expired among the next keys and forgets those that will not expire. Returns
  // whether all have been looked at since the last time it did.
  bool tick(core::keyspace::Keyspace& keyspace, int64_t now_ms);
  size_t size() const;

 private:
  using Key = std::pair<unsigned, std::string>;  // database, name

  mutable std::mutex mutex_;  // guards all below; taken after stripes
  std::set<Key> keys_;
  Key cursor_;  // tick() goes on behind it
};

}  // namespace server
