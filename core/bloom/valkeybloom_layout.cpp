// SPDX-License-Identifier: MIT
#include "core/bloom/valkeybloom_layout.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/bloom/bit_array.h"

namespace core::bloom {

std::optional<Geometry> ValkeyBloomLayout::size(uint64_t capacity, double error_rate) {
  constexpr double kLn2 = std::numbers::ln2;
  const double items = static_cast<double>(capacity);
  const double bytes = std::ceil(items * std::log(error_rate) / (-8.0 * (kLn2 * kLn2)));
  if (!(bytes >= 1 && bytes < static_cast<double>(BitArray::kMaxBits / 8))) return std::nullopt;
  Geometry geometry;
  geometry.bit_count = static_cast<uint64_t>(bytes) * 8;
  const double hashes = std::round(static_cast<double>(geometry.bit_count) / items * kLn2);
  if (!(hashes <= std::numeric_limits<uint16_t>::max())) return std::nullopt;
  geometry.hash_count = static_cast<uint16_t>(std::max(1.0, hashes));
  return geometry;
}

}  // namespace core::bloom
