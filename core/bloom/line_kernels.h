// SPDX-License-Identifier: MIT
//
// The inner loops of the native layout, once in portable C++ and once per instruction set that
// measures faster, chosen when the program first asks for them.
//
// Invariants: all kernels read and write the same bits and give the same answers; a fuzzer and
// line_kernels_test compare them.
// Thread safety: check() and check_group() may run beside each other; mark() needs the array to
// itself. Choosing is safe from any thread.
// Source: docs/bloom_math.md, "The native layout" and "Measured".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/bloom/hash.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

// Items whose cache lines are fetched together: more than enough to keep every miss buffer of a
// core busy, and so many that a batch of a hundred sets up each layer of a filter once; their
// hashes, patterns and lines still fit the first-level cache.
inline constexpr size_t kGroupItems = 128;

struct LineKernels {
  bool (*check)(const uint64_t* words, const Geometry& geometry, ItemHash hash);
  // True when some bit was clear before.
  bool (*mark)(uint64_t* words, const Geometry& geometry, ItemHash hash);
  // Sets found[i] of the items that are in some array and leaves the others; items found already
  // are not looked up. The arrays are visited about in their order.
  // REQUIRES: at most kGroupArrays arrays and kGroupItems hashes, as many `found` as hashes.
  void (*check_group)(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                      std::span<bool> found);
};

const LineKernels& portable_line_kernels();
// Null where the processor or the compiler has no AVX2.
const LineKernels* avx2_line_kernels();

inline const LineKernels& line_kernels() {
  static const LineKernels& best =
      avx2_line_kernels() != nullptr ? *avx2_line_kernels() : portable_line_kernels();
  return best;
}

}  // namespace core::bloom
