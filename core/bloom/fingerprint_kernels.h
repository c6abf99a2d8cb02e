// SPDX-License-Identifier: MIT
//
// Lookups and removals in tables of fingerprints, in portable C++ and with AVX2. The implementation
// is chosen at first use.
//
// Invariants: all kernels read and write the same bits and return the same results;
// fingerprint_kernels_test compares them.
// Thread safety: lookups may run in parallel; removals need exclusive access to the array. The
// choice of the kernel is thread-safe.
// Source: docs/bloom_math.md, "The fingerprints layout".
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/bloom/arrays/fingerprint_table.h"
#include "core/bloom/hash.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

struct FingerprintKernels {
  bool (*check)(const uint64_t* words, const Geometry& geometry, ItemHash hash);
  // Sets found[i] for each item that the array contains. found[i] stays true if it is already
  // set. REQUIRES: at most kGroupItems hashes; `found` is as long as `hashes`.
  void (*check_group)(const ArrayView& array, std::span<const ItemHash> hashes,
                      std::span<bool> found);
  // Removes the item. Returns false if the item is absent.
  bool (*remove)(uint64_t* words, const Geometry& geometry, ItemHash hash);
  // Tries to remove each item whose outcome is kAbsent, which means that no layer searched before
  // contained the item. Sets the outcome of each removed item to kGone. Returns the number of items
  // removed. REQUIRES: at most kGroupItems hashes, as many outcomes as hashes.
  uint64_t (*remove_group)(uint64_t* words, const Geometry& geometry,
                           std::span<const ItemHash> hashes, std::span<Removal> outcomes);
};

const FingerprintKernels& portable_fingerprint_kernels();
// Returns null if the processor or the compiler does not support AVX2.
const FingerprintKernels* avx2_fingerprint_kernels();

// Returns the table that loads a bucket as a word of 8 bytes; nullopt if its buckets need words of
// 16 bytes.
[[gnu::always_inline]] inline std::optional<FingerprintTable<uint64_t>> narrow_table(
    const uint64_t* words, const Geometry& geometry) {
  const BucketShape& shape = kBucketShapes[geometry.hash_count][geometry.cell_bits];
  if (!shape.is_narrow) return std::nullopt;
  return FingerprintTable<uint64_t>(words, geometry.bit_count / kLineBits, shape);
}

// Calls function(table) with a FingerprintTable of the narrowest word that the shape allows.
template <class Function>
[[gnu::always_inline]] inline auto with_fingerprint_table(const uint64_t* words,
                                                          const Geometry& geometry,
                                                          Function&& function) {
  const BucketShape& shape = kBucketShapes[geometry.hash_count][geometry.cell_bits];
  const uint64_t line_count = geometry.bit_count / kLineBits;
  return shape.is_narrow ? function(FingerprintTable<uint64_t>(words, line_count, shape))
                         : function(FingerprintTable<uint128_t>(words, line_count, shape));
}

inline const FingerprintKernels& fingerprint_kernels() {
  static const FingerprintKernels& best = avx2_fingerprint_kernels() != nullptr
                                              ? *avx2_fingerprint_kernels()
                                              : portable_fingerprint_kernels();
  return best;
}

}  // namespace core::bloom
