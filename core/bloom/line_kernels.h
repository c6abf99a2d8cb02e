// SPDX-License-Identifier: MIT
//
// The inner loops of the native layout, in portable C++ and for each instruction set with which
// they are measurably faster. The implementation is chosen before main() starts.
//
// Invariants: all kernels read and write the same bits and return the same results; a fuzzer and
// line_kernels_test compare them.
// Thread safety: check() and check_group() may run in parallel; mark() and mark_group() need
// exclusive access to the array. The kernels are chosen before main() starts.
// Source: docs/bloom_math.md, "The native layout, version 1" and "Measured".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/bloom/arrays/line_model.h"
#include "core/bloom/hash.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

class Layer;

// Number of items whose cache lines are fetched together. It is more than enough to keep every miss
// buffer of a core busy. A batch of up to 128 items visits each layer of a filter only once. The
// hashes, patterns and lines of a group fit the first-level cache.
inline constexpr size_t kGroupItems = 128;

// Prefetching from an array that is in the cache would cost as much as the lookup itself.
inline bool is_fetched(const Geometry& geometry) {
  return geometry.size_bytes() >= kCachedBytes;
}

// Returns whether the hash_count bits of an item spread evenly over its lines, with at most
// `max_bits_per_line` bits in each.
inline bool has_valid_lines(const Geometry& geometry, unsigned max_bits_per_line) {
  const unsigned lines = geometry.lines_per_lookup;
  return lines >= 1 && lines <= kMaxLinesPerLookup && geometry.hash_count % lines == 0 &&
         geometry.hash_count / lines <= max_bits_per_line;
}

// The properties of an array that a kernel for a single item needs. They are passed in two
// registers.
struct LineShape {
  uint64_t line_count = 0;
  uint32_t lines_per_lookup = 0;
  uint32_t bits_per_line = 0;

  LineShape() = default;
  LineShape(const Geometry& geometry)  // implicit, so that callers may pass a Geometry
      : line_count(geometry.bit_count / kLineBits),
        lines_per_lookup(geometry.lines_per_lookup),
        // hash_count is a multiple of the number of lines, so that the product is exact. A division
        // would cost more than all other arithmetic of a lookup.
        bits_per_line(geometry.hash_count * kReciprocals[geometry.lines_per_lookup] >> 16) {}

 private:
  // 2^16 / n, rounded up.
  static constexpr auto kReciprocals = [] {
    std::array<uint32_t, kMaxLinesPerLookup + 1> reciprocals{};
    for (uint32_t n = 1; n < reciprocals.size(); ++n) reciprocals[n] = ((1U << 16) + n - 1) / n;
    return reciprocals;
  }();
};

struct LineKernels {
  bool (*check)(const uint64_t* words, LineShape shape, ItemHash hash);
  // Sets the item's bits. Returns true if at least one of them was clear before.
  bool (*mark)(uint64_t* words, LineShape shape, ItemHash hash);
  // Returns whether some layer contains the item. The other lines of a layer are read only if all
  // bits in its first line are set. So this is faster than check() if most layers lack the item.
  bool (*check_any)(std::span<const Layer> layers, ItemHash hash);
  // Sets found[i] for each item that some array contains. Items with found[i] already set are
  // skipped. The arrays are visited roughly in order.
  // REQUIRES: at most kGroupArrays arrays and kGroupItems hashes; `found` is as long as `hashes`.
  void (*check_group)(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                      std::span<bool> found);
  // Sets the bits of each item, in order. Sets found[i] if all of them were set before. Items with
  // found[i] already set are skipped. Returns the number of items that set a bit.
  // REQUIRES: at most kGroupItems hashes; `found` is as long as `hashes`.
  uint64_t (*mark_group)(uint64_t* words, const Geometry& geometry,
                         std::span<const ItemHash> hashes, std::span<bool> found);
};

const LineKernels& portable_line_kernels();
// Returns the kernels that use AVX2; null if the processor or the compiler does not support it.
const LineKernels* avx2_line_kernels();
// Returns the fastest kernels that the processor supports.
const LineKernels& line_kernels();

// These functions do the same as the members of line_kernels() for single items. A call through a
// function pointer, with the geometry in memory, would take longer than checking the item's bits.
bool check_line_item(const uint64_t* words, LineShape shape, ItemHash hash);
bool check_line_item_in_any(std::span<const Layer> layers, ItemHash hash);
bool mark_line_item(uint64_t* words, LineShape shape, ItemHash hash);

}  // namespace core::bloom
