// SPDX-License-Identifier: MIT
//
// ScalableFilter: a Bloom filter that grows by whole layers, each with a stricter error rate.
//
// Invariants: a filter has at least one layer; only the last layer accepts items; the layout never
// changes. A lookup begins with the newest layers. The native layouts test the first lines of up to
// 64 layers together. An added item is found forever, or until the filter's window forgets it, or
// until it is deleted if the layout supports deletion. Deletion follows the contract of
// DeletableLayout in core/bloom/layouts.h. It removes an item from the oldest layer that contains
// it. No older layer contained the item when it was added, and older layers only lose items. So the
// item was added to the oldest layer that contains it. An older layer that becomes empty is
// dropped.
// Thread safety: const members may run in parallel; the others need exclusive access to the filter.
// hasher() returns a copy, so callers may hash before they lock.
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
#include "core/memory/memory_budget.h"
#include "core/result.h"

namespace core::bloom {

class Window;
struct WindowRotation;

// Error text of a filter that has no next layer: see ScalableFilter::next_layer_bytes().
inline constexpr std::string_view kNoNextLayer =
    "ERR the filter is full and cannot grow: its next layer would need a too small error rate, or "
    "it has the most layers. Make a filter with a higher capacity";

// kCannotGrow: the maximum number of layers is reached, memory does not suffice, or the next
// layer's capacity or error rate is out of range. With kRefreshed the item was present, and was
// also added to the newest generation.
enum class AddOutcome : uint8_t { kAdded, kPresent, kFull, kCannotGrow, kRefreshed };

// Returns true if the add has changed the filter and must therefore be journalled.
inline bool has_effect(AddOutcome outcome) {
  return outcome == AddOutcome::kAdded || outcome == AddOutcome::kRefreshed;
}

struct LayerInfo {
  uint64_t capacity = 0;
  uint64_t item_count = 0;
  double error_rate = 0;
  Geometry geometry;
};

// A layer read from a file or from another server, not validated yet.
struct LayerParts {
  Geometry geometry;
  uint64_t capacity = 0;
  uint64_t item_count = 0;
  double error_rate = 0;
  BitArray bits;
};

class ScalableFilter {
 public:
  // Creates a filter. If it has a window of time, the window begins at `start_ms`. Errors: error
  // rate, capacity or window out of range; memory refused by the budget or by the system. The
  // budget must allow the memory of all generations together.
  static Result<std::unique_ptr<ScalableFilter>> create(const FilterParameters& asked,
                                                        const MemoryBudget& budget,
                                                        int64_t start_ms = 0);
  // Plans the first layer (of each generation, if there is a window) without allocating it. Errors:
  // those of create(), except memory refused by the budget or by the system.
  static Result<LayerPlan> plan(const FilterParameters& asked);
  // Builds a filter from parts, the oldest layer first. Errors: parts that no filter can have.
  // `window` has the window's settings and as many layers as there are parts.
  static Result<std::unique_ptr<ScalableFilter>> assemble(const FilterParameters& parameters,
                                                          std::vector<LayerParts> parts,
                                                          const Window* window = nullptr);
  ~ScalableFilter();
  ScalableFilter(const ScalableFilter&) = delete;
  ScalableFilter& operator=(const ScalableFilter&) = delete;
  // Returns a deep copy of the filter; null if the allocation fails.
  std::unique_ptr<ScalableFilter> clone() const;
  // Detaches the arrays from existing child processes, so that the children do not see later adds
  // to shared memory (BitArray). Returns false if the allocation fails; some layers may then be
  // detached.
  bool detach_from_children();

  ItemHasher hasher() const;
  AddOutcome add(std::string_view item, const MemoryBudget& budget);
  AddOutcome add(ItemHash hash, const MemoryBudget& budget);
  // If the filter has a window of time, ignores generations that have expired at `now_ms`. With
  // kNoTime, which replicas pass, searches all generations that no rotation has removed yet.
  bool may_contain(std::string_view item, int64_t now_ms = kNoTime) const;
  bool may_contain(ItemHash hash, int64_t now_ms = kNoTime) const;
  // Prefetches the cache lines that a lookup or add of these items usually touches in arrays of at
  // least `bytes_min` bytes. Pass 0 for a filter that is unlikely to be in the cache at all.
  void prefetch(std::span<const ItemHash> hashes, uint64_t bytes_min = kCachedBytes) const;

  // Adds an item that is known to be new: a lookup has just found that it is absent, or the journal
  // recorded it as new. See replay_many().
  AddOutcome add_new(ItemHash hash, const MemoryBudget& budget);
  // Repeats adds of items that the journal recorded as new, without checking whether the items are
  // present. Item count, room and growth alone determine the outcomes. The bits may be set already,
  // if a snapshot was taken while they were being set. `outcomes` is as long as `hashes`.
  void replay_many(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                   const MemoryBudget& budget);

  // REQUIRES: the layout supports deletion.
  Removal remove(ItemHash hash);
  void remove_many(std::span<const ItemHash> hashes, std::span<Removal> outcomes);

  // The functions for several items prefetch the cache lines of a group of items together.
  // `outcomes` and `found` are as long as `hashes`. add_many() stops after the first kFull, and
  // returns the number of items processed. `known` saves a second look at the layers that accept no
  // more items. It is empty, or the result of may_contain_many() for the same hashes. REQUIRES:
  // `known` is empty, or the filter has no window and has not changed since that lookup.
  size_t add_many(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                  const MemoryBudget& budget, std::span<const bool> known = {});
  void may_contain_many(std::span<const ItemHash> hashes, std::span<bool> found,
                        int64_t now_ms = kNoTime) const;

  // Returns the filter's window; null if the filter has no window and so never forgets items.
  const Window* window() const { return is_chain() ? chain_->window.get() : nullptr; }
  // Returns the number of items counted in a generation of the window. Index 0 is the oldest
  // generation.
  uint64_t generation_item_count(size_t index) const;
  // Rotates a window of time. If a rotation is due, this must be called before the next add. A
  // window of items needs no call, because an add rotates it. The budget must allow the bytes by
  // which the new generation is bigger than the dropped ones. If the rotation is invalid now or
  // memory is short, changes nothing and returns false. REQUIRES: window() != nullptr.
  bool rotate(const WindowRotation& rotation, const MemoryBudget& budget);
  // Returns the layers that rotations and deletions have dropped since the last call; null if there
  // are none. The caller should free them on a thread that no client waits for.
  std::unique_ptr<ScalableFilter> take_dropped();

  FilterParameters parameters() const;
  bool is_scaling() const { return parameters().expansion != 0; }
  LayoutId layout() const { return static_cast<LayoutId>(first_.filter_layout_); }

  uint64_t item_count() const;
  uint64_t capacity() const;
  size_t layer_count() const { return layers().size(); }
  // Returns the filter's memory: accounted_bytes(), plus the memory of the window if the filter has
  // one.
  uint64_t size_bytes() const;
  // Returns the size of the next layer's array in bytes; nullopt if the filter cannot grow.
  std::optional<uint64_t> next_layer_bytes() const;

  // Returns the statistics of a layer. Layer 0 is the oldest.
  LayerInfo layer_info(size_t index) const;
  const BitArray& layer_bits(size_t index) const;
  BitArray& mutable_layer_bits(size_t index);
  // Fill ratio of a layer, computed by BitArray::fill_ratio(), which reads at most max_bytes of the
  // array.
  double sampled_fill_ratio(size_t index, uint64_t max_bytes) const;
  // Probability that an item that was never added is found now in any layer, or in this layer. A
  // formula computes it from the content, in about two microseconds per layer.
  double predicted_error_rate() const;
  double predicted_error_rate(size_t index) const;

 private:
  class Adder;
  friend class BulkFilter;  // sets the bits of many items with several threads

  // State of a filter that has several layers, or parameters that a Layer cannot store, such as a
  // window or a seed.
  struct Chain {
    FilterParameters parameters;
    std::vector<Layer> layers;
    std::vector<double> error_rates;
    std::unique_ptr<Window> window;
    std::unique_ptr<ScalableFilter> dropped;  // holds the dropped layers until take_dropped()
  };

  ScalableFilter() : error_rate_(0) {}
  void become_single(const FilterParameters& parameters, Layer layer);
  void become_chain(std::unique_ptr<Chain> chain);
  Chain& make_chain();

  bool is_chain() const { return first_.filter_is_chain_; }
  std::span<const Layer> layers() const;
  std::span<Layer> layers();
  // The layers that a lookup at `now_ms` visits.
  std::span<const Layer> layers_at(int64_t now_ms) const;
  double layer_error_rate_of(size_t index) const;
  std::optional<LayerPlan> next_plan() const;
  bool grow(const MemoryBudget& budget);
  // Adds a layer for the generation that the rotation begins. Returns false if memory is short.
  bool add_generation(const WindowRotation& rotation, const MemoryBudget& budget);

  void drop_layers(size_t first, size_t count);

  // The only layer, or an empty layer if chain_ holds the layers. In both cases the spare bits of
  // first_ hold fields of the filter.
  Layer first_;
  union {
    double error_rate_;
    Chain* chain_;
  };
};

// Returns a filter without items. It has the parameters of `filter`, and one layer like the first
// layer of `filter`. Returns null if the allocation fails.
std::unique_ptr<ScalableFilter> create_empty_like(const ScalableFilter& filter);
// Returns the error for a new filter of `size_bytes` bytes that does not fit in memory.
Error does_not_fit(uint64_t size_bytes);

}  // namespace core::bloom
