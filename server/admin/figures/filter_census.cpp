// SPDX-License-Identifier: MIT
#include "server/admin/figures/filter_census.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/bloom/scalable_filter.h"
#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "server/commands/bloom/filter_figures.h"

namespace server::admin {
namespace {

using core::keyspace::Entry;
using core::keyspace::Keyspace;

constexpr size_t kKeysPerPage = 500;
// Limits on the pause between two walks over all keys. The first kFreeUs microseconds of a walk
// need no pause. Each further microsecond delays the next walk by kRestPerWork microseconds, up to
// kRestMaxUs in total.
constexpr int64_t kFreeUs = 1000;
constexpr int64_t kRestPerWork = 1000;
constexpr int64_t kRestMaxUs = 600 * core::kSecondUs;
// The maximum number of bytes that are read from the array of a large filter. Half a million bits
// give the fill ratio with an error of about 0.001.
constexpr uint64_t kReadBytes = uint64_t{64} << 10;

bool is_larger(const LargeFilter& a, const LargeFilter& b) {
  return a.size_bytes > b.size_bytes;
}

// Keeps the largest filters in a heap, with the smallest filter on top.
void keep_largest(std::vector<LargeFilter>& largest, LargeFilter filter) {
  if (largest.size() == FilterCensus::kLargestMax) {
    if (!is_larger(filter, largest.front())) return;
    std::ranges::pop_heap(largest, is_larger);
    largest.pop_back();
  }
  largest.push_back(std::move(filter));
  std::ranges::push_heap(largest, is_larger);
}

}  // namespace

void FilterCensus::refresh(int64_t budget_us) {
  if (!walk_ && clock_.monotonic_us() >= next_us_) walk_.emplace();
  step(budget_us);
}

void FilterCensus::step(int64_t budget_us) {
  if (!walk_) return;
  const int64_t begun_us = clock_.monotonic_us();
  for (;;) {
    read_page(*walk_);
    const int64_t taken_us = clock_.monotonic_us() - begun_us;
    const bool is_over = walk_->database >= keyspace_.database_count();
    if (is_over || taken_us >= budget_us) {
      walk_->spent_us += taken_us;
      if (is_over) finish();
      return;
    }
  }
}

void FilterCensus::read_page(CensusWalk& walk) {
  while (walk.database < keyspace_.database_count() && keyspace_.db_size(walk.database) == 0) {
    ++walk.database;
    walk.cursor = 0;
  }
  if (walk.database >= keyspace_.database_count()) return;
  core::keyspace::ScanOptions options;
  options.cursor = walk.cursor;
  options.count = kKeysPerPage;
  CensusFigures& figures = walk.figures;
  walk.cursor = keyspace_.scan(walk.database, options, [&](const Entry& entry) {
    if (!entry.is_filter()) return;
    const core::bloom::ScalableFilter& filter = entry.filter();
    ++figures.object_count;
    figures.layer_count += filter.layer_count();
    figures.item_count = core::bloom::add_counts(figures.item_count, filter.item_count());
    figures.capacity = core::bloom::add_counts(figures.capacity, filter.capacity());
    figures.memory_bytes += filter.size_bytes();
    const bool is_small = figures.largest.size() == kLargestMax &&
                          filter.size_bytes() <= figures.largest.front().size_bytes;
    // Copying a name takes time, so the names of small filters are not copied.
    if (is_small) return;
    keep_largest(figures.largest, {.database = walk.database,
                                   .key = std::string(entry.key()),
                                   .size_bytes = filter.size_bytes()});
  });
  if (walk.cursor == 0) ++walk.database;
}

void FilterCensus::finish() {
  CensusFigures figures = std::move(walk_->figures);
  const auto order = [](const LargeFilter& filter) {
    return std::tuple(~filter.size_bytes, filter.database, std::string_view(filter.key));
  };
  std::ranges::sort(figures.largest, {}, order);
  const auto is_twice = [order](const LargeFilter& left, const LargeFilter& right) {
    return order(left) == order(right);
  };
  figures.largest.erase(std::unique(figures.largest.begin(), figures.largest.end(), is_twice),
                        figures.largest.end());
  std::erase_if(figures.largest, [this](LargeFilter& filter) { return !describe(filter); });
  figures_ = std::move(figures);
  const int64_t rest_us = kRestPerWork * std::max<int64_t>(0, walk_->spent_us - kFreeUs);
  next_us_ = clock_.monotonic_us() + std::min(kRestMaxUs, rest_us);
  walk_.reset();
}

bool FilterCensus::describe(LargeFilter& filter) const {
  const core::keyspace::KeyRef key = keyspace_.ref(filter.key);
  const auto lock = keyspace_.lock_shared(key);
  const Entry* const entry = keyspace_.find(filter.database, key, clock_.wall_ms());
  if (entry == nullptr || !entry->is_filter()) return false;
  const core::bloom::ScalableFilter& found = entry->filter();
  filter.size_bytes = found.size_bytes();
  filter.item_count = found.item_count();
  filter.capacity = found.capacity();
  filter.layer_count = found.layer_count();
  filter.fill_ratio = fill_ratio_of(found, kReadBytes);
  filter.predicted_error_rate = found.predicted_error_rate();
  filter.error_rate = found.parameters().error_rate;
  filter.items_left = items_left_in(found);
  return true;
}

}  // namespace server::admin
