// SPDX-License-Identifier: MIT
//
// WindowSchedule: the keys that may hold filters with a window of time, and when each must be
// checked. It lets a leader find due rotations without a scan of all keys.
//
// Only the names of keys are stored, without databases. So MOVE and SWAPDB do not change the
// schedule. Entry::set_filter() records the key's name whenever a key gets a filter with a window
// of time. A key may lose its filter while its name is stored; the caller of take_due() detects
// that.
//
// Invariants: if a filter has a window of time and may hold items, the name of its key is in the
// schedule. Between take_due() and put_back(), the caller holds the name instead.
// Thread safety: all members may be called from any thread, also while stripe locks are held.
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

  // Schedules a check of the key soon. Called when a filter with a window gets this name, and when
  // such a filter gets its first item.
  void record(std::string_view key);
  // Removes and returns a name whose check is due. After the clock has jumped back, the checks of
  // all names are due.
  std::optional<Name> take_due(int64_t now_ms);
  // Makes the check of every name due now.
  void bring_all();
  // Puts back a name that take_due() returned, unless record() has added the name again since then.
  // If the key does not exist, the caller puts its name back, but only once. The reason is that a
  // thread calls record() before it inserts a new key, so the key may be about to appear.
  void put_back(Name name, int64_t due_ms);
  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Plan {
    int64_t due_ms = 0;
    bool was_missing = false;
  };

  // make_all_due() and insert() require that mutex_ is held.
  void make_all_due();
  void insert(std::string key, Plan plan);

  std::mutex mutex_;  // guards plans_, by_time_ and last_now_ms_
  std::unordered_map<std::string, Plan> plans_;
  std::set<std::pair<int64_t, std::string>> by_time_;
  int64_t last_now_ms_ = 0;
  std::atomic<size_t> size_{0};
};

}  // namespace core::keyspace
