// SPDX-License-Identifier: MIT
#include "core/keyspace/layout_counts.h"

namespace core::keyspace {

LayoutCounts& LayoutCounts::of_process() {
  static LayoutCounts counts;
  return counts;
}

void LayoutCounts::add(bloom::LayoutId layout, std::string_view key) {
  const auto index = static_cast<size_t>(layout);
  // The key's name is stored before the count is increased. So a thread that reads a count above 0
  // also finds a name.
  if (counts_[index].load(std::memory_order_relaxed) == 0) {
    const std::scoped_lock lock(mutex_);
    first_keys_[index] = key;
  }
  counts_[index].fetch_add(1, std::memory_order_release);
  totals_[index].fetch_add(1, std::memory_order_release);
}

std::string LayoutCounts::first_key(bloom::LayoutId layout) const {
  const std::scoped_lock lock(mutex_);
  return first_keys_[static_cast<size_t>(layout)];
}

}  // namespace core::keyspace
