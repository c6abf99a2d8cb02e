// SPDX-License-Identifier: MIT
//
// OwnExpiries: keys that clients wrote on a writable replica. The leader does not know these keys
// and so never deletes them. The replica must delete them when they expire.
//
// Invariants: a changed key stays recorded until tick() finds that it has expired, has no expiry or
// no longer exists. At most a million keys are recorded. An expired key that is not recorded is
// hidden from readers, but not deleted. As in Redis, this replica deletes a recorded key when it
// expires, even if the leader's stream has overwritten the key.
// Thread safety: all members may be called from any thread. tick() takes stripe locks, so the
// caller must hold none.
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
  // Called when a client has changed the key.
  void record(unsigned database, std::string_view key);
  // Forgets all keys. Called when this server's role has changed, or all data were replaced.
  void clear() {
    const std::scoped_lock lock(mutex_);
    keys_.clear();
  }
  // Checks some of the recorded keys. Deletes expired keys, and stops recording keys without an
  // expiry. Returns whether a pass over all recorded keys is complete.
  bool tick(core::keyspace::Keyspace& keyspace, int64_t now_ms);
  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return keys_.size();
  }

 private:
  using Key = std::pair<unsigned, std::string>;  // database and name of a key

  mutable std::mutex mutex_;  // this mutex guards the members below; locked after stripes
  std::set<Key> keys_;
  Key cursor_;  // tick() continues after this key
};

}  // namespace server
