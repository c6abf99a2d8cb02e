// SPDX-License-Identifier: MIT
//
// NativeLayout: an item's bits fall into a few independent cache lines of 512 bits, a few in each,
// so a lookup costs as many cache misses as it has lines, not as it has bits.
//
// Invariants: bit_count is a multiple of 512; hash_count is a multiple of lines_per_lookup, with at
// most seven bits in each line, so that one 64-bit word holds a line's nine-bit positions.
// Thread safety: check() may run beside check(); mark() needs the array to itself.
// Source: docs/bloom_math.md, "The native layout"; Putze, Sanders, Singler 2009.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/bloom/hash.h"
#include "core/bloom/line_kernels.h"
#include "core/bloom/line_walk.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

struct NativeLayout {
  static constexpr LayoutId kId = LayoutId::kNative;
  // Below this two different items are as likely to share their 128-bit hash as to collide.
  static constexpr double kMinErrorRate = 0x1p-96;

  static std::optional<Geometry> size(uint64_t capacity, double error_rate);
  static double predicted_error(const Geometry& geometry, uint64_t item_count);

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    prefetch_lines(words, LineWalk(hash, geometry), geometry.lines_per_lookup);
  }
  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    return line_kernels().check(words, geometry, hash);
  }
  static void check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                          std::span<bool> found) {
    line_kernels().check_group(arrays, hashes, found);
  }
  // True when some bit was clear before.
  static bool mark(uint64_t* words, const Geometry& geometry, ItemHash hash) {
    return line_kernels().mark(words, geometry, hash);
  }
};

}  // namespace core::bloom
