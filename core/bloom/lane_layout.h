// SPDX-License-Identifier: MIT
//
// LaneLayout: version 2 of the native layout. An item's bits lie in a few independent cache lines.
// Within a line, an item has at most one bit in each 32-bit lane. So SIMD instructions compute and
// test all these bits in parallel.
//
// Invariants: bit_count is a multiple of 512. hash_count is a multiple of lines_per_lookup, with at
// most kMaxLanesPerItem bits in each line. ItemHash::second is not used.
// Thread safety: check() calls may run in parallel; mark() needs exclusive access to the array.
// Source: docs/bloom_math.md, "Lanes" and "The series of layer errors".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/arrays/lane_sets.h"
#include "core/bloom/hash.h"
#include "core/bloom/lane_kernels.h"
#include "core/bloom/line_walk.h"
#include "core/bloom/native_layout.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

struct LaneLayout {
  static constexpr LayoutRow kRow{.id = kLaneLayout,
                                  .name = "native-2",
                                  .has_fixed_hash = true,
                                  .takes_tightening = true,
                                  .min_error_rate = 0x1p-30,
                                  .takes_window = true,
                                  .marks_estimates = true};
  static constexpr LayoutId kId = kRow.id;

  static ItemHash hash(std::string_view item, const HashSettings& /*settings*/) {
    return hash_lanes(item);
  }

  static std::optional<LayerPlan> plan(const FilterParameters& parameters, uint64_t capacity,
                                       double error_rate);
  // Error rate of a layer. The sum over all layers is at most the requested error rate.
  static double layer_error_rate(const FilterParameters& parameters, uint32_t index);
  static bool is_valid(const Geometry& geometry);
  static double predicted_error(const Geometry& geometry, uint64_t item_count);

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    prefetch_lines(words, LaneWalk(hash, geometry), geometry.lines_per_lookup);
  }
  // Prefetches only the first line, where the lookup of most absent items ends.
  static void prefetch_first(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    prefetch_lines(words, LaneWalk(hash, geometry), 1);
  }
  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    return check_lane_item(words, geometry, hash);
  }
  static bool check_any(std::span<const Layer> layers, ItemHash hash) {
    return check_lane_item_in_any(layers, hash);
  }
  static void check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                          std::span<bool> found) {
    lane_kernels().check_group(arrays, hashes, found);
  }
  // Sets the item's bits. Returns true if at least one of them was clear before.
  static bool mark(uint64_t* words, const Geometry& geometry, ItemHash hash) {
    return mark_lane_item(words, geometry, hash);
  }
  static uint64_t mark_group(uint64_t* words, const Geometry& geometry,
                             std::span<const ItemHash> hashes, std::span<bool> found) {
    return lane_kernels().mark_group(words, geometry, hashes, found);
  }
  // Calls visit(bit) for each bit that mark() sets.
  template <class Visitor>
  static void visit_bits(const Geometry& geometry, ItemHash hash, Visitor&& visit) {
    const LineShape shape(geometry);
    LaneWalk walk(hash, shape);
    for (unsigned line = 0; line < shape.lines_per_lookup; ++line, walk.advance()) {
      const uint64_t positions = walk.positions();
      const unsigned set = lane_set(shape.bits_per_line, lane_rotation(positions));
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if ((set >> lane & 1) != 0) visit(walk.word_index() * 64 + lane_bit(positions, lane));
      }
    }
  }
};

}  // namespace core::bloom
