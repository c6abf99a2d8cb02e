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

#include <array>
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

// What a kernel works out once for a group of items and uses in every layer: an item's first line
// has the same pattern of bits everywhere. Only the kernel that wrote it can read it.
struct alignas(32) LinePatterns {
  static constexpr size_t kBytesPerItem = 64;
  std::array<std::byte, kGroupItems * kBytesPerItem> bytes;
};

struct LineKernels {
  bool (*check)(const uint64_t* words, const Geometry& geometry, ItemHash hash);
  // True when some bit was clear before.
  bool (*mark)(uint64_t* words, const Geometry& geometry, ItemHash hash);
  // REQUIRES: at most kGroupItems hashes.
  void (*prepare)(std::span<const ItemHash> hashes, LinePatterns& patterns);
  // Sets found[i] of the items that are there and leaves the others; items found already are not
  // looked up. REQUIRES: `patterns` as prepare() wrote them for `hashes`, and as many `found`.
  void (*check_group)(const uint64_t* words, const Geometry& geometry,
                      std::span<const ItemHash> hashes, const LinePatterns& patterns,
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
