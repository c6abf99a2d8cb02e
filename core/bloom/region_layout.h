// SPDX-License-Identifier: MIT
//
// RegionLayout: a Bloom filter in cache lines whose bits can be cleared again. A line's bits stand
// in regions of r bits; each region has one bit more, its flag, which says that two items share a
// bit of the region. A removal clears the item's bits in regions without a flag.
//
// The contract is that of core/bloom/layouts.h. Why no item is lost that was added and not
// removed: let every such item own its k bits. In a region without a flag each set bit has exactly
// one owner, and each clear bit none. An insertion keeps this: it sets the clear bits and flags the
// regions of the bits that were set before it. A removal keeps it: it clears the bits that only the
// removed item owns, and leaves flagged regions as they are. A flag is never taken back. So a bit
// that a removal clears belongs to no other item. An item whose regions are all flagged stays.
//
// Invariants: geometry.cell_bits is r; a line has D = 512 r / (r + 1) bits of items, rounded down,
// and behind them one flag for each of its regions, so that an item's flags are in lines that it
// touches anyway. Three words follow the last line: bits set, bits set at most, and flags set. Once
// the bits set reach their limit there is no room, whatever the item count: bits that removals
// leave behind count against the error rate like all others.
// Thread safety: check() may run beside check(); the others need the array to themselves.
// Source: docs/bloom_math.md, "Regions"; Rothenberg, Macapuna, Verdi, Wiesmaier 2010, "The
// Deletable Bloom Filter".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/hash.h"
#include "core/bloom/line_walk.h"
#include "core/bloom/models/line_model.h"
#include "core/bloom/native_layout.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

struct RegionLayout {
  static constexpr LayoutRow kRow{.id = kRegionLayout,
                                  .name = "regions",
                                  .clears_bits = true,
                                  .has_fixed_hash = true,
                                  .takes_tightening = true,
                                  .takes_region_bits = true};
  static constexpr LayoutId kId = kRow.id;

  static ItemHash hash(std::string_view item, const HashSettings& /*settings*/) {
    return hash_native(item);
  }

  // REQUIRES: region_bits from 1 to kMaxRegionBits.
  static std::optional<Geometry> size(uint64_t capacity, double error_rate, unsigned region_bits);
  static std::optional<LayerPlan> plan(const FilterParameters& parameters, uint64_t capacity,
                                       double error_rate) {
    const unsigned region_bits =
        parameters.region_bits != 0 ? parameters.region_bits : kDefaultRegionBits;
    return LayerPlan::of(capacity, error_rate, size(capacity, error_rate, region_bits));
  }
  static double layer_error_rate(const FilterParameters& parameters, uint32_t index) {
    return NativeLayout::layer_error_rate(parameters, index);
  }
  static double next_error_rate(const FilterParameters& parameters, uint32_t index,
                                double /*last_rate*/) {
    return layer_error_rate(parameters, index);
  }
  static bool is_valid(const Geometry& geometry);
  // Of a filter that nothing was removed from.
  static double predicted_error(const Geometry& geometry, uint64_t item_count);
  static uint64_t accounted_bytes(uint64_t layer_count, uint64_t bits_bytes) {
    return NativeLayout::accounted_bytes(layer_count, bits_bytes);
  }
  // Share of the items that would stay if they were removed now, each alone. Of a filter that
  // nothing was removed from; removals leave flags behind.
  static double predicted_residue(const Geometry& geometry, double item_count);
  // What the array says, whatever was added and removed.
  static double fill_now(const uint64_t* words, const Geometry& geometry, uint64_t item_count);
  static double items_now(const uint64_t* words, const Geometry& geometry, uint64_t item_count);
  static double error_now(const uint64_t* words, const Geometry& geometry, uint64_t item_count);
  // Takes a millisecond.
  static double residue_now(const uint64_t* words, const Geometry& geometry, uint64_t item_count);
  // Whether the three words say what the lines do. Reads the whole array, but untouched pages.
  static bool is_sound(const BitArray& bits, const Geometry& geometry, uint64_t item_count);

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    prefetch_lines(words, LineWalk(hash, geometry), geometry.lines_per_lookup);
  }
  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash);
  static void check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                          std::span<bool> found);
  // `capacity` is the layer's; it decides when there is no room.
  static Insertion insert(uint64_t* words, const Geometry& geometry, uint64_t capacity,
                          ItemHash hash);
  static bool insert_new(uint64_t* words, const Geometry& geometry, uint64_t capacity,
                         ItemHash hash) {
    return insert(words, geometry, capacity, hash) != Insertion::kNoRoom;
  }
  static Removal remove(uint64_t* words, const Geometry& geometry, ItemHash hash);
};

}  // namespace core::bloom
