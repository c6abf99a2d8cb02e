// SPDX-License-Identifier: MIT
//
// BulkFilter: builds a filter from a large number of items, using all cores.
//
// A batch is added in two steps. First each thread takes a share of the items and lists their bits,
// with one list for each region of the array. Then each region is processed by one thread, which
// sets the bits item by item in the order of the batch. So threads never contend for a bit, and an
// item counts as new exactly if ScalableFilter::add() would count it as new.
// Invariants: finish() returns the filter that ScalableFilter::add() would build from the same
// items in the same order. Bits and counts are equal for any number of threads. In a layout with
// deletion, the bits that an item sets depend on the items before it. So a single thread adds all
// items of such a layout.
// Thread safety: none; one thread owns the filter. While add() runs, the same thread also owns the
// team.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"
#include "core/result.h"
#include "core/thread_team.h"

namespace core::bloom {

class BulkFilter {
 public:
  // `budget` and `team` must outlive the filter. Errors: those of ScalableFilter::create().
  // REQUIRES: `asked` has no window.
  static Result<std::unique_ptr<BulkFilter>> create(const FilterParameters& asked,
                                                    const MemoryBudget& budget, ThreadTeam& team);

  ItemHasher hasher() const { return filter_->hasher(); }
  // Errors: the filter is full, or the next layer does not fit in memory.
  Result<> add(std::span<const ItemHash> hashes);
  uint64_t item_count() const { return filter_->item_count(); }
  // Returns the filter. Must be called once. No other member may be called afterwards.
  std::unique_ptr<ScalableFilter> finish() { return std::move(filter_); }

 private:
  // A bit of the array and the index of its item in the batch, in one word.
  class Mark {
   public:
    static constexpr unsigned kItemBits = 16;
    static constexpr uint64_t kBitsMax = uint64_t{1} << (64 - kItemBits);
    Mark(uint64_t bit, size_t item) : value_(bit << kItemBits | item) {}
    uint64_t bit() const { return value_ >> kItemBits; }
    size_t item() const { return value_ & ((size_t{1} << kItemBits) - 1); }

   private:
    uint64_t value_;
  };
  using Marks = std::vector<Mark>;

  BulkFilter(std::unique_ptr<ScalableFilter> filter, const MemoryBudget& budget, ThreadTeam& team)
      : filter_(std::move(filter)), budget_(budget), team_(team), marks_(team.size()) {}

  Layer& last_layer() const { return filter_->layers().back(); }
  Result<> add_alone(std::span<const ItemHash> hashes);
  size_t batch_size() const;
  unsigned region_shift() const;
  template <class Layout>
  Result<> add_as(std::span<const ItemHash> hashes);
  template <class Layout>
  void add_batch(std::span<const ItemHash> hashes);
  template <class Layout>
  void list_marks(std::span<const ItemHash> hashes, size_t first, std::vector<Marks>& regions);
  void mark_regions();

  std::unique_ptr<ScalableFilter> filter_;
  const MemoryBudget& budget_;
  ThreadTeam& team_;
  // marks_[member][region]: the bits that items of the batch set in one region of the array. Each
  // thread (member) of team_ lists the bits for its share of the items.
  std::vector<std::vector<Marks>> marks_;
  // One entry for each item of the batch: 1 if the item has set a bit.
  std::vector<uint8_t> has_changed_;
  std::atomic<size_t> next_region_{0};
};

}  // namespace core::bloom
