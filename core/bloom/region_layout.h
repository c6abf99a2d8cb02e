// SPDX-License-Identifier: MIT
//
// RegionLayout: a Bloom filter in cache lines whose bits can be cleared again. The bits of a line
// are divided into regions of r bits. Each region has a flag, one more bit, which says that two
// items share a bit of the region. A removal clears the item's bits in regions whose flag is clear.
//
// The contract is that of core/bloom/layouts.h. Proof that a lookup finds every item that was added
// and not removed: let every such item own its k bits. In a region whose flag is clear, each set
// bit has exactly one owner, and each clear bit has none. An insertion preserves this: it sets the
// clear bits, and sets the flags of the regions of the bits that were set before. A removal
// preserves it: it clears the bits that only the removed item owns, and does not change regions
// whose flag is set. A flag is never cleared. So a bit that a removal clears belongs to no other
// item. An item cannot be removed if the flags of all its regions are set.
//
// Invariants: a region has r = geometry.cell_bits bits. A line has D = 512 r / (r + 1) item bits,
// rounded down, followed by one flag for each of its regions. So an item's flags are in lines that
// a lookup touches anyway. Three words follow the last line: the number of set bits, the limit on
// this number, and the number of set flags. When the number of set bits reaches the limit, the
// layer is full, whatever its item count. Bits that removals leave behind increase the error rate
// like all other set bits.
// Thread safety: check() calls may run in parallel; insertions and removals need exclusive access
// to the array.
// Source: docs/bloom_math.md, "Regions"; Rothenberg, Macapuna, Verdi, Wiesmaier 2010, "The
// Deletable Bloom Filter".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/arrays/line_model.h"
#include "core/bloom/hash.h"
#include "core/bloom/line_walk.h"
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

  // REQUIRES: region_bits is in [1, kMaxRegionBits].
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
  static bool is_valid(const Geometry& geometry);
  // Returns the predicted error rate of a layer from which no item was removed.
  static double predicted_error(const Geometry& geometry, uint64_t item_count);
  // Predicts the probability that a given item cannot be removed, if no item was removed before.
  // After removals the probability is higher, because removals do not clear flags.
  static double predicted_residue(const Geometry& geometry, double item_count);
  // Computes the fill ratio from the number of set bits. The item count would give a wrong ratio
  // after removals, which may leave bits behind.
  static double fill_now(const uint64_t* words, const Geometry& geometry, uint64_t item_count);
  static double items_now(const uint64_t* words, const Geometry& geometry, uint64_t item_count);
  static double error_now(const uint64_t* words, const Geometry& geometry, uint64_t item_count);
  // Returns the share of the regions whose flag is set.
  static double flag_share_now(const uint64_t* words, const Geometry& geometry);
  // Returns the share of the items that cannot be removed when this share of the flags is set. The
  // computation takes about a millisecond.
  static double residue_of(const Geometry& geometry, double flag_share);
  // True if the three counters after the last line agree with the bits of the lines. In a partly
  // loaded array the counters may be smaller, because they arrive after the lines. Reads the whole
  // array except untouched pages.
  static bool is_sound(const BitArray& bits, const Geometry& geometry, uint64_t item_count,
                       Loaded loaded);

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    prefetch_lines(words, LineWalk(hash, geometry), geometry.lines_per_lookup);
  }
  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash);
  static void check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                          std::span<bool> found);
  // Adds an item. `capacity` is the capacity of the layer and decides when the layer is full.
  static Insertion insert(uint64_t* words, const Geometry& geometry, uint64_t capacity,
                          ItemHash hash);
  static bool insert_new(uint64_t* words, const Geometry& geometry, uint64_t capacity,
                         ItemHash hash) {
    return insert(words, geometry, capacity, hash) != Insertion::kNoRoom;
  }
  static Removal remove(uint64_t* words, const Geometry& geometry, ItemHash hash);
};

}  // namespace core::bloom
