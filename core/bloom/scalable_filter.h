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

class Window;
struct WindowTurn;

// kCannotGrow: the next layer does not fit in memory, or its capacity or error rate has no number.
// kRefreshed: it was there, and has been added to the newest generation too.
enum class AddOutcome : uint8_t { kAdded, kPresent, kFull, kCannotGrow, kRefreshed };

// Whether bits and counts have changed, so that a journal must tell.
inline bool has_effect(AddOutcome outcome) {
  return outcome == AddOutcome::kAdded || outcome == AddOutcome::kRefreshed;
}

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
  // A window of time begins at `start_ms`. Errors: a rate, capacity or window out of range; memory
  // that the budget or the system refuses. The budget is asked for all generations at once.
  static Result<std::unique_ptr<ScalableFilter>> create(const FilterParameters& asked,
                                                        const MemoryBudget& budget,
                                                        int64_t start_ms = 0);
  // The first layer that create() would make, of each generation where there are some, without
  // making it. Errors: as there, but for memory.
  static Result<LayerPlan> plan(const FilterParameters& asked);
  // Builds a filter from parts, the oldest layer first. Errors: parts that no filter can have.
  // With a window, `window` has its settings and as many layers as there are parts.
  static Result<std::unique_ptr<ScalableFilter>> assemble(const FilterParameters& parameters,
                                                          std::vector<LayerParts> parts,
                                                          const Window* window = nullptr);
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
  // A filter with a window answers for what is remembered at `now_ms`; kNoTime goes by the turns
  // that were carried out, as replicas do.
  bool may_contain(std::string_view item, int64_t now_ms = kNoTime) const;
  bool may_contain(ItemHash hash, int64_t now_ms = kNoTime) const;
  // Asks for the cache lines that a lookup or add of this item will touch in arrays of so many
  // bytes or more: 0 for a filter that is unlikely to be in the cache at all.
  void prefetch(ItemHash hash, uint64_t bytes_min = kCachedBytes) const;

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
  void may_contain_many(std::span<const std::string_view> items, std::span<bool> found,
                        int64_t now_ms = kNoTime) const;
  void may_contain_many(std::span<const ItemHash> hashes, std::span<bool> found,
                        int64_t now_ms = kNoTime) const;

  // Null where nothing is ever forgotten.
  const Window* window() const { return is_chain() ? chain_->window.get() : nullptr; }
  // Items counted in a generation of the window, 0 being the oldest.
  uint64_t generation_item_count(size_t index) const;
  // Carries out a turn of a window of time, before the add that comes behind it. Windows of items
  // turn by themselves. False, and nothing has changed, when the turn may not follow what is there
  // or when the memory cannot be had. REQUIRES: window() != nullptr.
  bool turn(const WindowTurn& turn);
  // The layers that turns and deletions have dropped since the last call, to be freed where nobody
  // waits; or null.
  std::unique_ptr<ScalableFilter> take_dropped();

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
  const BitArray& layer_bits(size_t index) const;
  BitArray& mutable_layer_bits(size_t index);
  // As BitArray::fill_ratio: at most max_bytes of it are read.
  double sampled_fill_ratio(size_t index, uint64_t max_bytes) const;
  // Probability that an item never added is found now, all layers together.
  double predicted_error_rate() const;

 private:
  class Adder;
  // What a filter has once it is more than one layer of the usual kind.
  struct Chain {
    FilterParameters parameters;
    std::vector<Layer> layers;
    std::vector<double> error_rates;
    std::unique_ptr<Window> window;
    std::unique_ptr<ScalableFilter> dropped;  // until take_dropped()
  };

  ScalableFilter() : error_rate_(0) {}
  void become_single(const FilterParameters& parameters, Layer layer);
  void become_chain(std::unique_ptr<Chain> chain);
  Chain& make_chain();

  bool is_chain() const { return first_.filter_is_chain_; }
  std::span<const Layer> layers() const;
  std::span<Layer> layers();
  // Those that a lookup at `now_ms` visits.
  std::span<const Layer> layers_at(int64_t now_ms) const;
  double layer_error_rate_of(size_t index) const;
  std::optional<LayerPlan> next_plan() const;
  bool grow(const MemoryBudget& budget);

  void drop_layers(size_t first, size_t count);

  // The only layer, or empty beside a chain; its spare bits hold what both forms need.
  Layer first_;
  union {
    double error_rate_;
    Chain* chain_;
  };
};

// As the filter was when it was new: its first layer without an item. Null when the memory cannot
// be had.
std::unique_ptr<ScalableFilter> create_empty_like(const ScalableFilter& filter);
// The error for a filter, or its next array, that memory has no room for.
Error does_not_fit(uint64_t size_bytes);

}  // namespace core::bloom
