// SPDX-License-Identifier: MIT
//
// LayoutCounts: the number of filters of each layout in this process. From these numbers a leader
// learns, without a scan of all keys, which layouts its replicas must support.
//
// Invariants: a filter is counted from before its entry becomes visible to other threads until the
// filter is freed.
// Thread safety: all members may be called from any thread, also while stripe locks are held.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "core/bloom/parameters.h"

namespace core::keyspace {

class LayoutCounts {
 public:
  static LayoutCounts& of_process();

  void add(bloom::LayoutId layout, std::string_view key);
  void remove(bloom::LayoutId layout) {
    counts_[static_cast<size_t>(layout)].fetch_sub(1, std::memory_order_relaxed);
  }

  uint64_t count(bloom::LayoutId layout) const {
    return counts_[static_cast<size_t>(layout)].load(std::memory_order_acquire);
  }
  // Returns whether the process has a filter of any layout.
  bool any() const {
    return std::ranges::any_of(counts_, [](const auto& count) { return count.load() != 0; });
  }
  // Returns the number of calls of add() for the layout. The number also counts filters that no
  // longer exist, and each rename of a filter's key.
  uint64_t total(bloom::LayoutId layout) const {
    return totals_[static_cast<size_t>(layout)].load(std::memory_order_acquire);
  }
  // Returns the key of the layout's first filter. If a filter is added when the layout has no other
  // filter, its key replaces the previous first key.
  std::string first_key(bloom::LayoutId layout) const;

 private:
  std::array<std::atomic<uint64_t>, bloom::kLayoutIdsMax> counts_{};
  std::array<std::atomic<uint64_t>, bloom::kLayoutIdsMax> totals_{};
  mutable std::mutex mutex_;  // guards first_keys_
  std::array<std::string, bloom::kLayoutIdsMax> first_keys_;
};

}  // namespace core::keyspace
