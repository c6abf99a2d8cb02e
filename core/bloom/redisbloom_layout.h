// SPDX-License-Identifier: MIT
//
// RedisBloomLayout: sizes and probes of RedisBloom's filters, bit for bit. Includes the two older
// forms of old dumps (32-bit hashes; arrays rounded up to a power of two).
//
// Invariants: bit_count is the modulus of every probe.
// Thread safety: check() calls may run in parallel; mark() needs exclusive access to the array.
// Source: docs/bloom_math.md, "The redisbloom layout".
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

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
  static constexpr LayoutRow kRow{.id = LayoutId{2},
                                  .name = "redisbloom",
                                  .is_foreign = true,
                                  .own_tightening = 0.5,
                                  .has_older_forms = true};
  static constexpr LayoutId kId = kRow.id;

  static ItemHash hash(std::string_view item, const HashSettings& settings) {
    return settings.is_32_bits ? hash_redisbloom_32(item) : hash_redisbloom(item);
  }

  static std::optional<LayerPlan> plan(const FilterParameters& parameters, uint64_t capacity,
                                       double error_rate) {
    if (parameters.rounds_to_power_of_two) return size_rounded(capacity, error_rate);
    return LayerPlan::of(capacity, error_rate, size(capacity, error_rate));
  }
  static double layer_error_rate(const FilterParameters& parameters, uint32_t index) {
    return std::ldexp(parameters.error_rate,
                      -static_cast<int>(std::min<uint32_t>(index, 4000)) - 1);
  }
  // Like RedisBloom, gives the next layer half the error rate of the last layer, whichever server
  // created the last layer.
  static double next_error_rate(double last_rate) { return last_rate * kRow.own_tightening; }
  // Returns the memory of a filter, computed by RedisBloom's formula.
  static uint64_t accounted_bytes(uint64_t layer_count, uint64_t bits_bytes) {
    return 32 + 64 * layer_count + bits_bytes;
  }

  static double bits_per_item(double error_rate);
  static std::optional<Geometry> size(uint64_t capacity, double error_rate) {
    return size_with(capacity, bits_per_item(error_rate));
  }
  // Returns the bits per item of a layer whose size another machine computed. The logarithms of the
  // two machines may differ in the last digit (kRateTolerance), which can change the hash count.
  // Returns nullopt if no difference within this tolerance explains the stored `hash_count`.
  static std::optional<double> bits_per_item(double error_rate, uint64_t hash_count);
  // Like size(), but for a layer whose number of bits per item is stored.
  static std::optional<Geometry> size_with(uint64_t capacity, double bits_per_item);
  // Plans a layer of a filter from an old dump, whose array sizes are rounded up to a power of two.
  // The capacity of the plan includes the items that fit because of this rounding.
  static std::optional<LayerPlan> size_rounded(uint64_t capacity, double error_rate);
};

}  // namespace core::bloom
