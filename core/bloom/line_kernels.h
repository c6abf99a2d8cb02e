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

// Items whose cache lines are fetched together: enough to keep every miss buffer of a core busy,
// while their hashes and lines stay in its first-level cache. 16 to 64 measure alike.
inline constexpr size_t kGroupItems = 32;

struct LineKernels {
  bool (*check)(const uint64_t* words, const Geometry& geometry, ItemHash hash);
  // True when some bit was clear before.
  bool (*mark)(uint64_t* words, const Geometry& geometry, ItemHash hash);
  // Sets found[i] of the items that are there and leaves the others; items found already are not
  // looked up. REQUIRES: at most kGroupItems hashes, and as many `found`.
  void (*check_group)(const uint64_t* words, const Geometry& geometry,
                      std::span<const ItemHash> hashes, std::span<bool> found);
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
