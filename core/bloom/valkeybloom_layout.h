// SPDX-License-Identifier: MIT
//
// ValkeyBloomLayout: sizes and probes of valkey-bloom's filters, bit for bit.
//
// Invariants: bit_count is a multiple of 8. Every probe position is taken modulo bit_count.
// Thread safety: check() calls may run in parallel; mark() needs exclusive access to the array.
// Source: docs/bloom_math.md, "The valkey-bloom layout".
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>

#include "core/bloom/double_hashing.h"

namespace core::bloom {

class ValkeyBloomProbes {
 public:
  ValkeyBloomProbes(ItemHash hash, const Geometry& geometry)
      : hash_(hash), sum_(hash.first), bit_count_(geometry.bit_count) {}
  // Returns the next bit index. The first two probes use the hashes unchanged. Every later hash is
  // first reduced modulo a prime.
  uint64_t next() {
    constexpr uint64_t kLargestPrime = 0xFFFFFFFFFFFFFFC5;
    const unsigned index = index_++;
    const uint64_t sum = sum_;
    sum_ += hash_.second;
    if (index == 0) return hash_.first % bit_count_;
    if (index == 1) return hash_.second % bit_count_;
    return sum % kLargestPrime % bit_count_;
  }

 private:
  ItemHash hash_;
  uint64_t sum_;
  uint64_t bit_count_;
  unsigned index_ = 0;
};

struct ValkeyBloomLayout : DoubleHashing<ValkeyBloomProbes> {
  static constexpr LayoutRow kRow{.id = LayoutId{3},
                                  .name = "valkey-bloom",
                                  .is_foreign = true,
                                  .takes_seed = true,
                                  .takes_tightening = true,
                                  .own_tightening = 0.5,
                                  .fills_older_layers = true};
  static constexpr LayoutId kId = kRow.id;

  static ItemHash hash(std::string_view item, const HashSettings& settings) {
    return hash_valkeybloom(item, settings.keys);
  }

  static std::optional<LayerPlan> plan(const FilterParameters& /*parameters*/, uint64_t capacity,
                                       double error_rate) {
    return LayerPlan::of(capacity, error_rate, size(capacity, error_rate));
  }
  static double layer_error_rate(const FilterParameters& parameters, uint32_t index);
  // Returns the memory of a filter, computed by the formula of the module valkey-bloom.
  static uint64_t accounted_bytes(uint64_t layer_count, uint64_t bits_bytes) {
    const uint64_t slots = layer_count <= 1 ? 1 : std::max<uint64_t>(4, std::bit_ceil(layer_count));
    return 48 + 8 * slots + 208 * layer_count + bits_bytes;
  }

  static std::optional<Geometry> size(uint64_t capacity, double error_rate);
  // Returns the geometry of a layer whose array another machine has sized to `array_bytes`. Returns
  // nullopt if rounding errors (kRateTolerance) cannot explain the difference from size().
  static std::optional<Geometry> size_of(uint64_t capacity, double error_rate,
                                         uint64_t array_bytes);
};

}  // namespace core::bloom
