// SPDX-License-Identifier: MIT
//
// WatchTable: which keys of one stripe are under WATCH and whom to tell when they change.
//
// Invariants: a key without watchers has no row, so empty() is the only cost of an unwatched write.
// Thread safety: guarded by the stripe's exclusive lock; WatchFlag::dirty is read by its
// connection's thread without a lock.
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

// One per connection that watches; EXEC answers null when it is dirty.
struct WatchFlag {
  std::atomic<bool> dirty{false};
};
using WatchFlagPtr = std::shared_ptr<WatchFlag>;

class WatchTable {
 public:
  bool empty() const { return rows_.empty(); }
  // `was_expired`: the key had expired already, so its deletion for that reason is no change.
  // False, and nothing changes, when `flag` watches the key already.
  bool add(unsigned database, std::string_view key, WatchFlagPtr flag, bool was_expired);
  void remove(unsigned database, std::string_view key, const WatchFlagPtr& flag);
  void mark_modified(unsigned database, std::string_view key);
  // The key was deleted because it had expired; it counts as a change only to those who watched it
  // alive.
  void mark_expired(unsigned database, std::string_view key);
  // Another database takes the place of the key's: what there is before and after, and whether
  // that has expired already. As in Redis a key that is absent or stale on both sides has not
  // changed.
  struct Swapped {
    bool is_there_before;
    bool is_there_after;
    bool is_stale_after;
  };
  void mark_swapped(unsigned database, std::string_view key, Swapped swapped);
  // True when `flag` watches the key and saw it alive.
  bool watches_alive(unsigned database, std::string_view key, const WatchFlagPtr& flag) const;

  // Calls visitor(key) for each watched key of `database`; it may not change this table's rows.
  template <class Visitor>
  void for_each_key(unsigned database, Visitor&& visitor) const {
    for (const auto& row : rows_) {
      if (row.first.first == database) visitor(std::string_view(row.first.second));
    }
  }

 private:
  struct Watcher {
    WatchFlagPtr flag;
    bool was_expired;
  };
  using Key = std::pair<unsigned, std::string>;
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
