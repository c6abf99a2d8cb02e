// SPDX-License-Identifier: MIT
//
// The inner loops of the native layout, in portable C++ and for each instruction set that measures
// faster. The implementation is chosen at first use.
//
// Invariants: all kernels read and write the same bits and return the same results; a fuzzer and
// line_kernels_test compare them.
// Thread safety: check() and check_group() may run in parallel; mark() needs exclusive access to
// the array. The choice of the kernel is thread-safe.
// Source: docs/bloom_math.md, "The native layout" and "Measured".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/bloom/hash.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

// Number of items whose cache lines are fetched together. It is more than enough to keep every miss
// buffer of a core busy. A batch of a hundred items sets up each layer of a filter only once. The
// hashes, patterns and lines of a group fit the first-level cache.
inline constexpr size_t kGroupItems = 128;

struct LineKernels {
  bool (*check)(const uint64_t* words, const Geometry& geometry, ItemHash hash);
  // Sets the item's bits. Returns true if at least one of them was clear before.
  bool (*mark)(uint64_t* words, const Geometry& geometry, ItemHash hash);
  // Sets found[i] for each item that some array contains, and leaves all other elements unchanged.
  // Items with found[i] already set are skipped. The arrays are visited roughly in order.
  // REQUIRES: at most kGroupArrays arrays and kGroupItems hashes; `found` is as long as `hashes`.
  void (*check_group)(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                      std::span<bool> found);
};

const LineKernels& portable_line_kernels();
// Null if the processor or the compiler does not support AVX2.
const LineKernels* avx2_line_kernels();

inline const LineKernels& line_kernels() {
  static const LineKernels& best =
      avx2_line_kernels() != nullptr ? *avx2_line_kernels() : portable_line_kernels();
  return best;
}

}  // namespace core::bloom
