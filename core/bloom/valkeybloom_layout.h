// SPDX-License-Identifier: MIT
//
// ValkeyBloomLayout: sizes and probes of valkey-bloom's filters, bit for bit.
//
// Invariants: bit_count is a multiple of 8, and the modulus of every probe.
// Thread safety: as DoubleHashing.
// Source: docs/bloom_math.md, "The valkey-bloom layout".
#pragma once

#include <optional>

#include "core/bloom/double_hashing.h"

namespace core::bloom {

class ValkeyBloomProbes {
 public:
  ValkeyBloomProbes(ItemHash hash, const Geometry& geometry)
      : hash_(hash), sum_(hash.first), bit_count_(geometry.bit_count) {}
  // The first two probes are the plain hashes; the later ones pass through a prime first.
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
  static constexpr LayoutId kId = LayoutId::kValkeyBloom;

  static std::optional<Geometry> size(uint64_t capacity, double error_rate);
  // Of a layer that another machine has sized to so many bytes; nothing when the rate gives other
  // bytes on every machine (kRateTolerance).
  static std::optional<Geometry> size_of(uint64_t capacity, double error_rate,
                                         uint64_t array_bytes);
};

}  // namespace core::bloom
