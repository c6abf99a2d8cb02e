// SPDX-License-Identifier: MIT
//
// Layer: one fixed-size filter. It consists of a bit array and the geometry that says how to use
// the array. check_layers() and check_layers_group() look items up in several layers.
//
// Invariants: the array has geometry().bit_count bits. item_count() is the number of items added as
// new, minus the items removed.
// Thread safety: const members may run in parallel; the others need exclusive access to the layer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/hash.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

class Layer {
 public:
  Layer() = default;
  Layer(BitArray bits, const Geometry& geometry, uint64_t capacity, uint64_t item_count)
      : bits_(std::move(bits)),
        capacity_(capacity),
        item_count_(item_count),
        hash_count_(geometry.hash_count),
        lines_per_lookup_(geometry.lines_per_lookup),
        is_rounded_(geometry.is_rounded),
        cell_bits_(geometry.cell_bits) {}

  // Returns nullopt if the allocation fails.
  static std::optional<Layer> create(const LayerPlan& plan,
                                     ArraySharing sharing = ArraySharing::kShared) {
    auto bits = BitArray::allocate(plan.geometry.bit_count, sharing);
    if (!bits) return std::nullopt;
    return Layer(std::move(*bits), plan.geometry, plan.capacity, 0);
  }
  std::optional<Layer> clone() const {
    auto bits = bits_.clone();
    if (!bits) return std::nullopt;
    return Layer(std::move(*bits), geometry(), capacity_, item_count_);
  }

  uint64_t capacity() const { return capacity_; }
  uint64_t item_count() const { return item_count_; }
  bool is_full() const { return item_count_ >= capacity_; }
  // Returns how many more items the layer can get until it is full.
  uint64_t room() const { return capacity_ - std::min(capacity_, item_count_); }
  Geometry geometry() const {
    return {bits_.bit_count(), hash_count_, lines_per_lookup_, is_rounded_, cell_bits_};
  }
  const BitArray& bits() const { return bits_; }
  BitArray& bits() { return bits_; }

  template <class Layout>
  void prefetch(ItemHash hash) const {
    Layout::prefetch(bits_.words(), geometry(), hash);
  }
  // Prefetches what a lookup touches if this layer probably does not contain the item.
  template <class Layout>
  void prefetch_for_absent(ItemHash hash) const {
    if constexpr (requires { Layout::prefetch_first(bits_.words(), geometry(), hash); }) {
      Layout::prefetch_first(bits_.words(), geometry(), hash);
    } else {
      prefetch<Layout>(hash);
    }
  }
  template <class Layout>
  bool check(ItemHash hash) const {
    return Layout::check(bits_.words(), geometry(), hash);
  }
  ArrayView view() const { return {bits_.words(), geometry()}; }
  // Adds the item, and counts it if it is new. Only a deletable layout can return kNoRoom.
  template <class Layout>
  Insertion insert(ItemHash hash) {
    Insertion insertion{};
    if constexpr (Layout::kRow.clears_bits) {
      insertion = Layout::insert(bits_.words(), geometry(), capacity_, hash);
    } else {
      const bool changed = Layout::mark(bits_.words(), geometry(), hash);
      insertion = changed ? Insertion::kAdded : Insertion::kPresent;
    }
    item_count_ += insertion == Insertion::kAdded;
    return insertion;
  }
  // Adds the item. Returns true, and counts the item, if it is new.
  template <class Layout>
  bool mark(ItemHash hash) {
    return insert<Layout>(hash) == Insertion::kAdded;
  }
  // Skips the items whose found[i] is true, and adds all other items in order. Sets found[i] for
  // each item that the layer already contains at its turn, for example because an earlier item of
  // the group is equal.
  template <class Layout>
  void mark_group(std::span<const ItemHash> hashes, std::span<bool> found) {
    item_count_ += Layout::mark_group(bits_.words(), geometry(), hashes, found);
  }
  // Adds and counts every item, like insert_new(). REQUIRES: the layer has room for all items, the
  // layout does not support deletion, and the scratch space `unused` is as long as `hashes`.
  template <class Layout>
  void mark_new_group(std::span<const ItemHash> hashes, std::span<bool> unused) {
    std::ranges::fill(unused, false);
    Layout::mark_group(bits_.words(), geometry(), hashes, unused);
    item_count_ += hashes.size();
  }
  // Adds and counts the item even if its bits were set before. Used to replay adds that the journal
  // recorded as new. Returns false, with nothing changed, if there is no room.
  template <class Layout>
  bool insert_new(ItemHash hash) {
    if constexpr (Layout::kRow.clears_bits) {
      if (!Layout::insert_new(bits_.words(), geometry(), capacity_, hash)) return false;
    } else {
      Layout::mark(bits_.words(), geometry(), hash);
    }
    ++item_count_;
    return true;
  }
  // Counts items whose bits were set through bits().
  void count_new(uint64_t count) { item_count_ += count; }
  template <class Layout>
  Removal remove(ItemHash hash) {
    const Removal removal = Layout::remove(bits_.words(), geometry(), hash);
    // A layer loaded from a file may contain more items than its item count says, so removals must
    // not reduce the count below 0.
    item_count_ -= removal == Removal::kGone && item_count_ != 0;
    return removal;
  }
  // Returns true if a removal with this outcome has emptied the layer, so that the layer can be
  // dropped. The result is false for the outcome kStays, even if the layer is empty. Such a removal
  // is not journalled, so a replay could not drop the layer.
  bool is_emptied_by(Removal removal) const {
    return removal == Removal::kGone && item_count_ == 0;
  }
  // Tries to remove from this layer each item whose outcome is kAbsent, which means that no layer
  // searched before contained the item. Updates the outcomes. If `ends_empty` is true, stops after
  // a removal that empties the layer, and returns true.
  template <class Layout>
  bool remove_group(std::span<const ItemHash> hashes, std::span<Removal> outcomes,
                    bool ends_empty) {
    if constexpr (requires { Layout::remove_group(bits_.words(), geometry(), hashes, outcomes); }) {
      if (!ends_empty || hashes.size() < item_count_) {
        const uint64_t gone = Layout::remove_group(bits_.words(), geometry(), hashes, outcomes);
        item_count_ -= std::min(gone, item_count_);
        return false;
      }
    }
    if (bits_.size_bytes() >= kCachedBytes) {
      for (const ItemHash& hash : hashes) prefetch<Layout>(hash);
    }
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (outcomes[i] != Removal::kAbsent) continue;
      outcomes[i] = remove<Layout>(hashes[i]);
      if (ends_empty && is_emptied_by(outcomes[i])) return true;
    }
    return false;
  }

 private:
  friend class ScalableFilter;

  BitArray bits_;
  uint64_t capacity_ = 0;
  uint64_t item_count_ = 0;
  uint16_t hash_count_ = 0;
  uint8_t lines_per_lookup_ = 0;
  bool is_rounded_ : 1 = false;
  // Fields whose names begin with filter_ belong to the ScalableFilter, not to the layer. They use
  // the layer's padding, because separate fields or a pointer would enlarge each of many small
  // filters.
  bool filter_is_chain_ : 1 = false;
  uint8_t filter_layout_ : 6 = 0;
  uint16_t cell_bits_ = 0;
  uint16_t filter_expansion_ = 0;
};

// True if some layer contains the item.
template <class Layout>
bool check_layers(std::span<const Layer> layers, ItemHash hash) {
  if (layers.size() == 1) return layers.front().check<Layout>(hash);
  if constexpr (requires { Layout::check_any(layers, hash); }) {
    return Layout::check_any(layers, hash);
  }
  // Big layers are probably not in the cache. Their lines are prefetched before the first check, so
  // that the cache misses overlap.
  for (const Layer& layer : layers) {
    if (layer.bits().size_bytes() >= kCachedBytes) layer.prefetch<Layout>(hash);
  }
  // The newest layer holds the most items, so it is the most likely to end the search.
  for (size_t i = layers.size(); i > 0; --i) {
    if (layers[i - 1].check<Layout>(hash)) return true;
  }
  return false;
}

// Sets found[i] for each item that some layer contains. Items with found[i] already set are
// skipped.
template <class Layout>
void check_layers_group(std::span<const Layer> layers, std::span<const ItemHash> hashes,
                        std::span<bool> found) {
  while (!layers.empty()) {
    std::array<ArrayView, kGroupArrays> arrays;
    const size_t count = std::min(layers.size(), arrays.size());
    for (size_t i = 0; i < count; ++i) arrays[i] = layers[layers.size() - 1 - i].view();
    Layout::check_group(std::span<const ArrayView>(arrays).first(count), hashes, found);
    layers = layers.first(layers.size() - count);
  }
}

}  // namespace core::bloom
