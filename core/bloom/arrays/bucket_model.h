// SPDX-License-Identifier: MIT
//
// BucketModel: the shape of a table of fingerprints with two buckets per item, its error rate, and
// the number of items that it can hold.
//
// Invariants: buckets lie in lines of 512 bits and do not cross them; the number of buckets is
// even.
// Thread safety: pure functions; concurrent reads of a value are safe.
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
  // One load of 16 bytes covers a bucket anywhere in a line.
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
  // Probability of a false positive in a lookup, if the table holds `item_count` items.
  double error_rate(double item_count) const;
  // Number of items that a table of this shape can hold. About one table in 100,000 holds fewer
  // items.
  double reach() const;
};

// Returns the model with the fewest lines that hold `capacity` items and do not exceed the error
// rate. Returns nullopt if the rate needs longer fingerprints than a bucket can hold.
std::optional<BucketModel> solve_bucket_model(uint64_t capacity, double error_rate);

}  // namespace core::bloom
