// SPDX-License-Identifier: MIT
#include "core/bloom/redisbloom_layout.h"

#include <cmath>
#include <limits>

#include "core/bloom/arrays/bit_array.h"

namespace core::bloom {
namespace {

// RedisBloom's own roundings of ln(2)^2 and ln(2). More exact values would give other sizes.
constexpr double kModuleLn2Squared = 0.480453013918201;
constexpr double kModuleLn2 = 0.693147180559945;

std::optional<uint16_t> hash_count_for(double bits_per_item) {
  const double hashes = std::ceil(kModuleLn2 * bits_per_item);
  if (!(hashes >= 1 && hashes <= std::numeric_limits<uint16_t>::max())) return std::nullopt;
  return static_cast<uint16_t>(hashes);
}

}  // namespace

double RedisBloomLayout::bits_per_item(double error_rate) {
  return std::fabs(std::log(error_rate) / kModuleLn2Squared);
}

std::optional<double> RedisBloomLayout::bits_per_item(double error_rate, uint64_t hash_count) {
  const double own = bits_per_item(error_rate);
  const auto own_count = hash_count_for(own);
  if (!own_count) return std::nullopt;
  if (*own_count == hash_count) return own;
  // Finds the number of bits per item that gives `hash_count` hashes and is closest to `own`, the
  // number that this machine computes.
  const bool is_more = hash_count > *own_count;
  double per_item = static_cast<double>(is_more ? hash_count - 1 : hash_count) / kModuleLn2;
  const double far = is_more ? std::numeric_limits<double>::infinity() : 0;
  constexpr int kRoundings = 4;
  for (int i = 0; i < kRoundings && hash_count_for(per_item) != hash_count; ++i) {
    per_item = std::nextafter(per_item, far);
  }
  if (!is_close(per_item, own) || hash_count_for(per_item) != hash_count) return std::nullopt;
  return per_item;
}

std::optional<Geometry> RedisBloomLayout::size_with(uint64_t capacity, double per_item) {
  const auto hash_count = hash_count_for(per_item);
  const double bits = std::max(1.0, std::trunc(static_cast<double>(capacity) * per_item));
  if (!hash_count || !(bits < static_cast<double>(BitArray::kMaxBits))) return std::nullopt;
  return Geometry{.bit_count = (static_cast<uint64_t>(bits) + 63) / 64 * 64,
                  .hash_count = *hash_count};
}

std::optional<LayerPlan> RedisBloomLayout::size_rounded(uint64_t capacity, double error_rate) {
  const double per_item = bits_per_item(error_rate);
  const auto hash_count = hash_count_for(per_item);
  const double wanted = static_cast<double>(capacity) * per_item;
  if (!hash_count || !(wanted < static_cast<double>(BitArray::kMaxBits))) return std::nullopt;
  const int exponent = std::max(1, static_cast<int>(std::floor(std::log2(wanted))) + 1);
  LayerPlan plan;
  plan.error_rate = error_rate;
  plan.geometry.bit_count = uint64_t{1} << exponent;
  plan.geometry.hash_count = *hash_count;
  plan.geometry.is_rounded = true;
  const double spare_bits = std::trunc(static_cast<double>(plan.geometry.bit_count) - wanted);
  plan.capacity = capacity + static_cast<uint64_t>(spare_bits / per_item);
  return plan;
}

}  // namespace core::bloom
