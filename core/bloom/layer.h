// SPDX-License-Identifier: MIT
//
// Layer: one fixed-size filter, a bit array together with the shape that says how to use it.
//
// Invariants: the array has geometry().bit_count bits; item_count() counts adds that changed a bit.
// Thread safety: const members may run beside each other; mark() needs the layer to itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/bloom/bit_array.h"
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
        is_rounded_(geometry.is_rounded) {}

  // Nothing when the memory cannot be had.
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
  Geometry geometry() const {
    return {bits_.bit_count(), hash_count_, lines_per_lookup_, is_rounded_};
  }
  const BitArray& bits() const { return bits_; }
  BitArray& bits() { return bits_; }

  template <class Layout>
  void prefetch(ItemHash hash) const {
    Layout::prefetch(bits_.words(), geometry(), hash);
  }
  template <class Layout>
  bool check(ItemHash hash) const {
    return Layout::check(bits_.words(), geometry(), hash);
  }
  ArrayView view() const { return {bits_.words(), geometry()}; }
  // True, and counted, when some bit was clear before.
  template <class Layout>
  bool mark(ItemHash hash) {
    const bool changed = Layout::mark(bits_.words(), geometry(), hash);
    item_count_ += changed;
    return changed;
  }
  // Counts the item whether or not its bits were there: for replaying adds known to be new.
  template <class Layout>
  void mark_counted(ItemHash hash) {
    Layout::mark(bits_.words(), geometry(), hash);
    ++item_count_;
  }

 private:
  friend class ScalableFilter;

  BitArray bits_;
  uint64_t capacity_ = 0;
  uint64_t item_count_ = 0;
  uint16_t hash_count_ = 0;
  uint8_t lines_per_lookup_ = 0;
  bool is_rounded_ : 1 = false;
  // Space that would be padding. A filter of one layer is that layer and one more word, so the rest
  // of the filter is kept here: ten thousand small filters must not pay for an empty list.
  bool filter_is_chain_ : 1 = false;
  uint8_t filter_layout_ : 6 = 0;
  uint32_t filter_expansion_ = 0;
};

}  // namespace core::bloom
