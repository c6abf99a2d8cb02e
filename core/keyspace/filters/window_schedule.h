// SPDX-License-Identifier: MIT
//
// WindowSchedule: which keys may hold filters with a window of time, and when each is to be looked
// at, so that a leader finds those whose turn is due without a walk over all keys.
//
// Only names are kept, and no databases: a name stays right when its key is moved or databases are
// swapped, and every way to give a filter a name leads through Entry::set_filter(). What a name no
// longer holds is found out when its time comes.
//
// Invariants: a name whose filter has something to forget is noted, or in the hands of whoever took
// it out.
// Thread safety: all members may be called from any thread, under stripe locks too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace core::keyspace {

class WindowSchedule {
 public:
  struct Name {
    std::string key;
    bool was_missing = false;
  };

  static WindowSchedule& of_process();

  // The key is to be looked at soon: a filter with a window was given this name, or has its first
  // item.
  void note(std::string_view key);
  // Takes out a name whose time has come. A clock that has jumped back brings all.
  std::optional<Name> take_due(int64_t now_ms);
  // The next calls of take_due() give every name.
  void bring_all();
  // Puts a name back, unless it was noted meanwhile. One that was missing may be about to appear:
  // whoever makes a filter names it before it is in its table.
  void put_back(Name name, int64_t due_ms);
  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Plan {
    int64_t due_ms = 0;
    bool was_missing = false;
  };

  // Both with the mutex held.
  void make_all_due();
  void insert(std::string key, Plan plan);

  std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Plan> plans_;
  std::set<std::pair<int64_t, std::string>> by_time_;
  int64_t last_now_ms_ = 0;
  std::atomic<size_t> size_{0};
};

}  // namespace core::keyspace
