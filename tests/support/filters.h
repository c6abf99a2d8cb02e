// SPDX-License-Identifier: MIT
//
// Creates filters for tests from a few parameters, and compares filters with the values that other
// servers reported.
//
// Thread-safe: the functions keep no state.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"
#include "tests/support/vectors.h"

namespace filters {

using core::bloom::FilterParameters;
using core::bloom::LayoutId;
using core::bloom::NativeLayout;
using core::bloom::RedisBloomLayout;
using core::bloom::ScalableFilter;
using core::bloom::ValkeyBloomLayout;

inline constexpr auto kLayouts = [] {
  std::array<LayoutId, core::bloom::kLayoutRows.size()> ids{};
  std::ranges::transform(core::bloom::kLayoutRows, ids.begin(), &core::bloom::LayoutRow::id);
  return ids;
}();

inline FilterParameters parameters_of(LayoutId layout, double error_rate, uint64_t capacity,
                                      uint32_t expansion) {
  FilterParameters parameters;
  parameters.layout = layout;
  parameters.error_rate = error_rate;
  parameters.capacity = capacity;
  parameters.expansion = expansion;
  return parameters;
}

inline FilterParameters parameters(LayoutId layout, uint64_t capacity, double error_rate,
                                   uint32_t expansion = 2) {
  return parameters_of(layout, error_rate, capacity, expansion);
}

inline std::vector<core::bloom::ItemHash> hashes_of(const ScalableFilter& filter,
                                                    std::span<const std::string_view> items) {
  std::vector<core::bloom::ItemHash> hashes(items.size());
  filter.hasher()(items, hashes);
  return hashes;
}

// A filter that contains `prefix`:0, `prefix`:1 and so on.
inline std::unique_ptr<ScalableFilter> make(const FilterParameters& parameters,
                                            std::string_view prefix, int item_count) {
  const core::UnlimitedMemory budget;
  auto filter = *ScalableFilter::create(parameters, budget);
  for (int i = 0; i < item_count; ++i) filter->add(fmt::format("{}:{}", prefix, i), budget);
  return filter;
}

// Returns a copy in which each layer states the item count, marked as estimated.
inline std::unique_ptr<ScalableFilter> with_item_counts(const ScalableFilter& filter,
                                                        uint64_t item_count) {
  FilterParameters parameters = filter.parameters();
  parameters.item_count_is_estimated = true;
  std::vector<core::bloom::LayerParts> parts;
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const core::bloom::LayerInfo info = filter.layer_info(i);
    parts.push_back({info.geometry, info.capacity, item_count, info.error_rate,
                     std::move(*filter.layer_bits(i).clone())});
  }
  return std::move(*ScalableFilter::assemble(parameters, std::move(parts)));
}

inline std::vector<int> false_positives(const ScalableFilter& filter) {
  std::vector<int> found;
  for (int n = 0; n < 1000; ++n) {
    if (filter.may_contain(fmt::format("absent:{}", n))) found.push_back(n);
  }
  return found;
}

inline void expect_as_described(const ScalableFilter& filter, const vectors::Expected& expected) {
  EXPECT_EQ(filter.capacity(), expected.capacity);
  EXPECT_EQ(filter.layer_count(), expected.layer_count);
  EXPECT_EQ(filter.item_count(), expected.item_count);
  EXPECT_EQ(filter.parameters().expansion, expected.expansion);
  EXPECT_EQ(false_positives(filter), expected.false_positives);
}

}  // namespace filters
