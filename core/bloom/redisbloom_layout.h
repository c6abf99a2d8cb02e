// SPDX-License-Identifier: MIT
//
// RedisBloomLayout: sizes and probes of RedisBloom's filters, bit for bit, with the two older forms
// that old dumps hold (32-bit hashes; arrays rounded up to a power of two).
//
// Invariants: bit_count is the modulus that every probe is taken by.
// Thread safety: as DoubleHashing.
// Source: docs/bloom_math.md, "The redisbloom layout".
#pragma once

#include <optional>

#include "core/bloom/double_hashing.h"

namespace core::bloom {

class RedisBloomProbes {
 public:
  RedisBloomProbes(ItemHash hash, const Geometry& geometry)
      : sum_(hash.first), step_(hash.second), bit_count_(geometry.bit_count) {}
  uint64_t next() {
    const uint64_t bit = sum_ % bit_count_;
    sum_ += step_;
    return bit;
  }

 private:
  uint64_t sum_;
  uint64_t step_;
  uint64_t bit_count_;
};

struct RedisBloomLayout : DoubleHashing<RedisBloomProbes> {
  static constexpr LayoutId kId = LayoutId::kRedisBloom;

  static double bits_per_item(double error_rate);
  static std::optional<Geometry> size(uint64_t capacity, double error_rate) {
    return size_with(capacity, bits_per_item(error_rate));
  }
  // Of a layer that another machine has sized: what gives it `hash_count` hashes. Its logarithm may
  // differ in the last digit (kRateTolerance), and so may the hashes. Nothing when the rate gives
  // another count on every machine.
  static std::optional<double> bits_per_item(double error_rate, uint64_t hash_count);
  // The same from bits_per_item() of an error rate, for layers that have it stored.
  static std::optional<Geometry> size_with(uint64_t capacity, double bits_per_item);
  // The older form: rounding the array up leaves room for more items, which `capacity` then counts.
  static std::optional<LayerPlan> size_rounded(uint64_t capacity, double error_rate);
};

}  // namespace core::bloom
