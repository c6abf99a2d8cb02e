// SPDX-License-Identifier: MIT
#include "core/bloom/valkeybloom_layout.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/bloom/arrays/bit_array.h"

namespace core::bloom {
namespace {

constexpr double kLn2 = std::numbers::ln2;

// Computes a power by repeated squaring, in the order that valkey-bloom's compiler uses: the last
// bit can decide a layer's size.
double integer_power(double base, uint32_t exponent) {
  double power = 1;
  for (;; base *= base) {
    if (exponent & 1) power *= base;
    exponent /= 2;
    if (exponent == 0) return power;
  }
}

double exact_bytes(uint64_t capacity, double error_rate) {
  return static_cast<double>(capacity) * std::log(error_rate) / (-8.0 * (kLn2 * kLn2));
}

// Computes the geometry without a logarithm, so that each machine gives the same result.
std::optional<Geometry> geometry_of(uint64_t capacity, double bytes) {
  if (!(bytes >= 1 && bytes < static_cast<double>(BitArray::kMaxBits / 8))) return std::nullopt;
  const uint64_t bit_count = static_cast<uint64_t>(bytes) * 8;
  const double hashes =
      std::round(static_cast<double>(bit_count) / static_cast<double>(capacity) * kLn2);
  if (!(hashes <= std::numeric_limits<uint16_t>::max())) return std::nullopt;
  return Geometry{.bit_count = bit_count,
                  .hash_count = static_cast<uint16_t>(std::max(1.0, hashes))};
}

}  // namespace

double ValkeyBloomLayout::layer_error_rate(const FilterParameters& parameters, uint32_t index) {
  const double tightened =
      parameters.error_rate * integer_power(tightening_ratio_of(parameters), index);
  return tightened > std::numeric_limits<double>::min() ? tightened : 0;
}

std::optional<Geometry> ValkeyBloomLayout::size(uint64_t capacity, double error_rate) {
  return geometry_of(capacity, std::ceil(exact_bytes(capacity, error_rate)));
}

std::optional<Geometry> ValkeyBloomLayout::size_of(uint64_t capacity, double error_rate,
                                                   uint64_t array_bytes) {
  const double exact = exact_bytes(capacity, error_rate);
  const auto bytes = static_cast<double>(array_bytes);
  const bool is_possible = bytes >= std::ceil(exact * (1 - kRateTolerance)) &&
                           bytes <= std::ceil(exact * (1 + kRateTolerance));
  return is_possible ? geometry_of(capacity, bytes) : std::nullopt;
}

}  // namespace core::bloom
