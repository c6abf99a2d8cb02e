// SPDX-License-Identifier: MIT
#include "core/keyspace/filter_kinds.h"

namespace core::keyspace {

FilterKinds& FilterKinds::of_process() {
  static FilterKinds kinds;
  return kinds;
}

void FilterKinds::add(bloom::LayoutId layout, std::string_view key) {
  const auto index = static_cast<size_t>(layout);
  // The name is stored first, so that a thread that sees the count also finds the name.
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
