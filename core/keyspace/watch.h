// SPDX-License-Identifier: MIT
//
// WatchTable: the keys of one stripe that are under WATCH, and the watchers to notify of changes.
//
// Invariants: a key without watchers has no row. So if no key of the stripe is watched, a write
// only calls empty().
// Thread safety: changes need the stripe's exclusive lock. Const members need the lock at least
// shared. The thread of a connection reads WatchFlag::dirty without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace core::keyspace {

// One flag per connection that watches keys. If the flag is dirty, EXEC returns null.
struct WatchFlag {
  std::atomic<bool> dirty{false};
};
using WatchFlagPtr = std::shared_ptr<WatchFlag>;

class WatchTable {
 public:
  bool empty() const { return rows_.empty(); }
  // `was_expired`: the key had already expired at WATCH, so the deletion of the expired key is no
  // change. Returns false, with nothing changed, if `flag` already watches the key.
  bool add(unsigned database, std::string_view key, WatchFlagPtr flag, bool was_expired);
  void remove(unsigned database, std::string_view key, const WatchFlagPtr& flag);
  void mark_modified(unsigned database, std::string_view key);
  // Called when the key was deleted because it had expired. Only watchers that saw the key alive
  // see a change.
  void mark_expired(unsigned database, std::string_view key);
  // State of a key before and after its database is swapped, and whether it has expired afterwards.
  // As in Redis, a key has not changed if it was absent, or already expired at WATCH, and is absent
  // or expired after the swap.
  struct Swapped {
    bool is_there_before;
    bool is_there_after;
    bool is_stale_after;
  };
  void mark_swapped(unsigned database, std::string_view key, Swapped swapped);
  // Returns true if `flag` watches the key and has not seen it as expired. Only then does the
  // deletion of the expired key count as a change.
  bool watches_alive(unsigned database, std::string_view key, const WatchFlagPtr& flag) const;

  // Calls visitor(key) for each watched key of `database`. The visitor must not change the table.
  template <class Visitor>
  void for_each_key(unsigned database, Visitor&& visitor) const {
    auto row = rows_.lower_bound(KeyView(database, {}));
    for (; row != rows_.end() && row->first.first == database; ++row) {
      visitor(std::string_view(row->first.second));
    }
  }

 private:
  struct Watcher {
    WatchFlagPtr flag;
    bool was_expired;
  };
  using Key = std::pair<unsigned, std::string>;
  using KeyView = std::pair<unsigned, std::string_view>;
  struct KeyLess {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      if (a.first != b.first) return a.first < b.first;
      return std::string_view(a.second) < std::string_view(b.second);
    }
  };
  std::map<Key, std::vector<Watcher>, KeyLess> rows_;
};

}  // namespace core::keyspace
