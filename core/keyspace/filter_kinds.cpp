// SPDX-License-Identifier: MIT
#include "core/keyspace/filter_kinds.h"

namespace core::keyspace {

FilterKinds& FilterKinds::of_process() {
  static FilterKinds kinds;
  return kinds;
}

void FilterKinds::add(bloom::LayoutId layout, std::string_view key) {
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

std::string FilterKinds::first_key(bloom::LayoutId layout) const {
  const std::scoped_lock lock(mutex_);
  return first_keys_[static_cast<size_t>(layout)];
}

}  // namespace core::keyspace
