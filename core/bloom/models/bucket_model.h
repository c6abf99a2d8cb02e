// SPDX-License-Identifier: MIT
//
// BucketModel: the shape of a two-bucket table of fingerprints, and how many items it takes.
//
// Invariants: buckets lie in lines of 512 bits, none across two; their number is even.
// Thread safety: values and pure functions.
// Source: docs/bloom_math.md, "The fingerprints layout"; Fan, Andersen, Kaminsky, Mitzenmacher
// 2014, "Cuckoo Filter: Practically Better Than Bloom".
#pragma once

#include <cstdint>
#include <optional>

namespace core::bloom {

struct BucketModel {
  static constexpr unsigned kSlotsMin = 2;
  static constexpr unsigned kSlotsMax = 8;
  static constexpr unsigned kBitsMin = 2;
  static constexpr unsigned kBitsMax = 60;
  // A bucket anywhere in a line is read with one load of 16 bytes.
  static constexpr unsigned kBucketBitsMax = 120;

  double line_count = 0;
  unsigned slots_per_bucket = 0;
  unsigned fingerprint_bits = 0;

  static constexpr bool is_shape(unsigned slots_per_bucket, unsigned fingerprint_bits) {
    return slots_per_bucket >= kSlotsMin && slots_per_bucket <= kSlotsMax &&
           fingerprint_bits >= kBitsMin && fingerprint_bits <= kBitsMax &&
           slots_per_bucket * fingerprint_bits <= kBucketBitsMax;
  }
  double bucket_count() const;
  // Chance that an item never added is found among so many.
  double error_rate(double item_count) const;
  // Items that find their place, but for one table in about a hundred thousand.
  double reach() const;
};

// The fewest lines that take so many items and keep the rate; nothing when no fingerprint is long
// enough for it.
std::optional<BucketModel> solve_bucket_model(uint64_t capacity, double error_rate);

}  // namespace core::bloom
