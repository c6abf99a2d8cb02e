// SPDX-License-Identifier: MIT
//
// Lookups and removals in tables of fingerprints, once in portable C++ and once with AVX2, chosen
// when the program first asks for them.
//
// Invariants: all kernels read and write the same bits and give the same answers;
// fingerprint_kernels_test compares them.
// Thread safety: lookups may run beside each other; removals need the array to themselves. Choosing
// is safe from any thread.
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
  // Sets found[i] of the items that are in the array; items found already are not looked up.
  // REQUIRES: at most kGroupItems hashes, as many `found` as hashes.
  void (*check_group)(const ArrayView& array, std::span<const ItemHash> hashes,
                      std::span<bool> found);
  // False when the item is not there.
  bool (*remove)(uint64_t* words, const Geometry& geometry, ItemHash hash);
  // Removes the items whose outcome is kAbsent yet, and makes it kGone; returns how many that were.
  // REQUIRES: at most kGroupItems hashes, as many outcomes as hashes.
  uint64_t (*remove_group)(uint64_t* words, const Geometry& geometry,
                           std::span<const ItemHash> hashes, std::span<Removal> outcomes);
};

const FingerprintKernels& portable_fingerprint_kernels();
// Null where the processor or the compiler has no AVX2.
const FingerprintKernels* avx2_fingerprint_kernels();

// Nothing where buckets need wide words.
[[gnu::always_inline]] inline std::optional<FingerprintTable<uint64_t>> narrow_table(
    const uint64_t* words, const Geometry& geometry) {
  const BucketShape& shape = kBucketShapes[geometry.hash_count][geometry.cell_bits];
  if (!shape.is_narrow) return std::nullopt;
  return FingerprintTable<uint64_t>(words, geometry.bit_count / kLineBits, shape);
}

// Calls function(table) with the FingerprintTable of the narrower word that the shape allows.
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
