// SPDX-License-Identifier: MIT
//
// ScalableFilter: a Bloom filter that grows by whole layers, each with a stricter error rate.
//
// Invariants: a filter has at least one layer; only the last one takes items; the layout never
// changes. A lookup visits the newest layer, the largest, first. An item added is found for ever,
// or until it is deleted where the layout can do that: each deletion may undo one add that answered
// kAdded; an item that was added so and not deleted is never lost; deleting an item that was never
// added is the caller's fault (DeletableLayout in core/bloom/layouts.h). A deletion takes an item
// from the oldest layer that has it: when it was added no older one had it, and older layers only
// lose items, so the oldest match is its own. An older layer that becomes empty is dropped.
// Thread safety: const members may run beside each other; the others need the filter to themselves.
// hasher() gives a copy, so callers may hash before they lock.
// Source: Almeida, Baquero, Preguica, Hutchison 2007, "Scalable Bloom Filters"; docs/bloom_math.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/bloom/hash.h"
#include "core/bloom/layer.h"
#include "core/bloom/parameters.h"
#include "core/memory_budget.h"
#include "core/result.h"

namespace core::bloom {

// kCannotGrow: the next layer does not fit in memory, or its capacity or error rate has no number.
enum class AddOutcome : uint8_t { kAdded, kPresent, kFull, kCannotGrow };

struct LayerInfo {
  uint64_t capacity = 0;
  uint64_t item_count = 0;
  double error_rate = 0;
  Geometry geometry;
  // What the formulas say of the layer as it is now.
  double predicted_error_rate = 0;
};

// A layer read from a file or from another server, not yet trusted.
struct LayerParts {
  Geometry geometry;
  uint64_t capacity = 0;
  uint64_t item_count = 0;
  double error_rate = 0;
  BitArray bits;
};

class ScalableFilter {
 public:
  // Errors: a rate or capacity out of range; memory that the budget or the system refuses.
  static Result<std::unique_ptr<ScalableFilter>> create(const FilterParameters& asked,
                                                        const MemoryBudget& budget);
  // The first layer that create() would make, without making it. Errors: as there, but for memory.
  static Result<LayerPlan> plan(const FilterParameters& asked);
  // Builds a filter from parts, the oldest layer first. Errors: parts that no filter can have.
  static Result<std::unique_ptr<ScalableFilter>> assemble(const FilterParameters& parameters,
                                                          std::vector<LayerParts> parts);
  ~ScalableFilter();
  ScalableFilter(const ScalableFilter&) = delete;
  ScalableFilter& operator=(const ScalableFilter&) = delete;
  // Null when the memory cannot be had.
  std::unique_ptr<ScalableFilter> clone() const;
  // Children forked so far will see nothing of what is added from now on, as far as their memory
  // is shared (BitArray). False when the memory cannot be had; then some layers may be detached.
  bool detach_from_children();

  ItemHasher hasher() const;
  AddOutcome add(std::string_view item, const MemoryBudget& budget);
  AddOutcome add(ItemHash hash, const MemoryBudget& budget);
  bool may_contain(std::string_view item) const;
  bool may_contain(ItemHash hash) const;
  // Asks for the cache lines that a lookup or add of this item will touch, if they are many.
  void prefetch(ItemHash hash) const;

  // Repeats an add that a journal of ours says was new: no check, only count, room and growth
  // decide. The bits may be there already when a snapshot was taken while they were being set.
  AddOutcome replay_add(ItemHash hash, const MemoryBudget& budget);

  // REQUIRES: the layout clears bits.
  Removal remove(ItemHash hash);
  void remove_many(std::span<const ItemHash> hashes, std::span<Removal> outcomes);

  // The batch forms fetch a group's cache lines together. `outcomes` and `found` are as long as
  // `items`. add_many returns how many items it dealt with: it stops after the first kFull.
  size_t add_many(std::span<const std::string_view> items, std::span<AddOutcome> outcomes,
                  const MemoryBudget& budget);
  size_t add_many(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                  const MemoryBudget& budget);
  void may_contain_many(std::span<const std::string_view> items, std::span<bool> found) const;
  void may_contain_many(std::span<const ItemHash> hashes, std::span<bool> found) const;

  FilterParameters parameters() const;
  uint32_t expansion() const { return parameters().expansion; }
  bool is_scaling() const { return expansion() != 0; }
  LayoutId layout() const { return static_cast<LayoutId>(first_.filter_layout_); }

  uint64_t item_count() const;
  uint64_t capacity() const;
  size_t layer_count() const { return layers().size(); }
  // Memory held, as accounted_bytes() counts it.
  uint64_t size_bytes() const;
  // Array bytes of the layer that growing would add; nothing when it cannot grow.
  std::optional<uint64_t> next_layer_bytes() const;

  // Layer 0 is the oldest.
  LayerInfo layer_info(size_t index) const;
  std::span<const std::byte> layer_bytes(size_t index) const;
  // The same bits for those who read all of them: untouched pages are to stay so.
  const BitArray& layer_bits(size_t index) const;
  BitArray& mutable_layer_bits(size_t index);
  // Reads the whole array.
  double fill_ratio(size_t index) const;
  // As BitArray::fill_ratio: at most max_bytes of it are read.
  double sampled_fill_ratio(size_t index, uint64_t max_bytes) const;
  // Probability that an item never added is found now, all layers together.
  double predicted_error_rate() const;
  // Different items added, estimated from the bits alone (Swamidass, Baldi 2007). Reads all arrays.
  double estimated_cardinality() const;

 private:
  // What a filter has once it is more than one layer of the usual kind.
  struct Chain {
    FilterParameters parameters;
    std::vector<Layer> layers;
    std::vector<double> error_rates;
  };

  ScalableFilter() : error_rate_(0) {}
  void become_single(const FilterParameters& parameters, Layer layer);
  void become_chain(std::unique_ptr<Chain> chain);
  Chain& make_chain();

  bool is_chain() const { return first_.filter_is_chain_; }
  std::span<const Layer> layers() const;
  std::span<Layer> layers();
  double layer_error_rate_of(size_t index) const;
  std::optional<LayerPlan> next_plan() const;
  bool grow(const MemoryBudget& budget);

  template <class Layout>
  AddOutcome add_as(ItemHash hash, const MemoryBudget& budget);
  // Adds an item that the other layers do not hold.
  template <class Layout>
  AddOutcome add_to_last(ItemHash hash, const MemoryBudget& budget);
  // Adds at most kGroupItems; returns how many it dealt with.
  template <class Layout>
  size_t add_group(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                   const MemoryBudget& budget);
  template <class Layout>
  AddOutcome insert_in_new_layer(ItemHash hash, const MemoryBudget& budget);
  void drop_layer(size_t index);

  // The only layer, or empty beside a chain; its spare bits hold what both forms need.
  Layer first_;
  union {
    double error_rate_;
    Chain* chain_;
  };
};

}  // namespace core::bloom
