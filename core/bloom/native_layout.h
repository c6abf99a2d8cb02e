// SPDX-License-Identifier: MIT
//
// NativeLayout: an item's bits lie in a few independent cache lines of 512 bits, several bits in
// each line. So a lookup costs one cache miss per line, not one per bit.
//
// Invariants: bit_count is a multiple of 512. hash_count is a multiple of lines_per_lookup, with at
// most seven bits in each line, so that one 64-bit word holds a line's nine-bit positions.
// Thread safety: check() calls may run in parallel; mark() needs exclusive access to the array.
// Source: docs/bloom_math.md, "The native layout, version 1", "The series of layer errors"; Putze,
// Sanders, Singler 2009.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/hash.h"
#include "core/bloom/line_kernels.h"
#include "core/bloom/line_walk.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

// Caches the geometries of recently planned layers. Solving for a geometry takes more time than all
// other work for a new filter, and most filters of a server have the same parameters.
class SolvedSizes {
 public:
  struct Key {
    uint64_t capacity = 0;
    double error_rate = 0;
    double memory_slack = 0;
    bool operator==(const Key&) const = default;
  };
  // Returns the geometry that is cached for these parameters. If none is cached, calls solve() and
  // caches its result.
  template <class Solve>
  const std::optional<Geometry>& find(const Key& key, Solve&& solve) {
    constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
    const uint64_t mixed = (key.capacity ^ std::bit_cast<uint64_t>(key.error_rate)) * kMultiplier;
    Size& size = sizes_[mixed >> 60];
    if (size.key != key) size = {key, solve()};
    return size.geometry;
  }

 private:
  struct Size {
    Key key;
    std::optional<Geometry> geometry;
  };
  std::array<Size, 16> sizes_;
};

// Returns the geometry of a solved model; nullopt if there is no model, or if the array would have
// too many bits.
std::optional<Geometry> geometry_of(const std::optional<LineModel>& model);

struct NativeLayout {
  static constexpr LayoutRow kRow{.id = kNativeLayout,
                                  .name = "native",
                                  .has_fixed_hash = true,
                                  .takes_tightening = true,
                                  .takes_window = true,
                                  .marks_estimates = true};
  static constexpr LayoutId kId = kRow.id;
  // The lowest error rate of a layer. At lower rates most false positives would be items with equal
  // 128-bit hashes, which more bits cannot prevent.
  static constexpr double kMinErrorRate = 0x1p-96;

  static ItemHash hash(std::string_view item, const HashSettings& /*settings*/) {
    return hash_native(item);
  }

  static std::optional<Geometry> size(uint64_t capacity, double error_rate);
  static std::optional<LayerPlan> plan(const FilterParameters& /*parameters*/, uint64_t capacity,
                                       double error_rate) {
    return LayerPlan::of(capacity, error_rate, size(capacity, error_rate));
  }
  // Error rate of a layer. The sum over all layers is at most the requested error rate.
  static double layer_error_rate(const FilterParameters& parameters, uint32_t index);
  static bool is_valid(const Geometry& geometry);
  static double predicted_error(const Geometry& geometry, uint64_t item_count);

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    prefetch_lines(words, LineWalk(hash, geometry), geometry.lines_per_lookup);
  }
  // Prefetches only the first line, where the lookup of most absent items ends.
  static void prefetch_first(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    prefetch_lines(words, LineWalk(hash, geometry), 1);
  }
  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    return check_line_item(words, geometry, hash);
  }
  static bool check_any(std::span<const Layer> layers, ItemHash hash) {
    return check_line_item_in_any(layers, hash);
  }
  static void check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                          std::span<bool> found) {
    line_kernels().check_group(arrays, hashes, found);
  }
  // Sets the item's bits. Returns true if at least one of them was clear before.
  static bool mark(uint64_t* words, const Geometry& geometry, ItemHash hash) {
    return mark_line_item(words, geometry, hash);
  }
  static uint64_t mark_group(uint64_t* words, const Geometry& geometry,
                             std::span<const ItemHash> hashes, std::span<bool> found) {
    return line_kernels().mark_group(words, geometry, hashes, found);
  }
  // Calls visit(bit) for each bit that mark() sets.
  template <class Visitor>
  static void visit_bits(const Geometry& geometry, ItemHash hash, Visitor&& visit) {
    constexpr unsigned kPositionBits = 9;
    const LineShape shape(geometry);
    LineWalk walk(hash, shape);
    for (unsigned line = 0; line < shape.lines_per_lookup; ++line, walk.advance()) {
      uint64_t positions = walk.positions();
      for (unsigned i = 0; i < shape.bits_per_line; ++i, positions >>= kPositionBits) {
        visit(walk.word_index() * 64 + positions % kLineBits);
      }
    }
  }
};

}  // namespace core::bloom
