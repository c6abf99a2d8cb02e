// SPDX-License-Identifier: MIT
#include "core/bloom/native_layout.h"

#include <algorithm>
#include <cmath>

#include "core/bloom/arrays/bit_array.h"

namespace core::bloom {
namespace {

// Share of the error rate that the first layer of a growing native filter gets. It is large,
// because a filter that never exceeds its capacity has only this layer. It is larger for a small
// filter, whose array has only a few lines: a slightly higher error rate can save a whole line.
constexpr double kFirstShare = 5.0 / 8;
constexpr double kFirstShareOfSmall = 13.0 / 16;
constexpr uint64_t kSmallCapacity = 512;

// The later layers share the error rate that the first layer leaves. The share of layer i is
// proportional to 1/i up to i = 10, and to 10/i^2 above, so that the sum over all layers converges.
constexpr double kHarmonicLayers = 10;
// Sum of the weights of all layers after the first, which is layer 0. The weight of layer i is 1/i
// up to i = 10, and 10/i^2 above. The value is H + 10 (pi^2/6 - S), rounded up. H is the sum of
// 1/i, and S is the sum of 1/i^2, both from 1 to 10.
constexpr double kHarmonicSum = 3.880632;

double share_of(uint64_t capacity, uint32_t index) {
  const double first = capacity < kSmallCapacity ? kFirstShareOfSmall : kFirstShare;
  if (index == 0) return first;
  const double i = index;
  const double weight = i <= kHarmonicLayers ? 1 / i : kHarmonicLayers / (i * i);
  return (1 - first) * weight / kHarmonicSum;
}

}  // namespace

std::optional<Geometry> geometry_of(const std::optional<LineModel>& model) {
  if (!model || model->line_count > double(BitArray::kMaxBits / kLineBits)) return std::nullopt;
  const unsigned hash_count = model->lines_per_lookup * model->bits_per_line;
  return Geometry{.bit_count = static_cast<uint64_t>(model->line_count) * kLineBits,
                  .hash_count = static_cast<uint16_t>(hash_count),
                  .lines_per_lookup = static_cast<uint8_t>(model->lines_per_lookup)};
}

std::optional<Geometry> NativeLayout::size(uint64_t capacity, double error_rate) {
  if (capacity > kMaxLayerCapacity) return std::nullopt;
  thread_local SolvedSizes solved;
  return solved.find({capacity, error_rate}, [&] {
    return geometry_of(solve_line_model(capacity, std::max(error_rate, kMinErrorRate)));
  });
}

double NativeLayout::layer_error_rate(const FilterParameters& parameters, uint32_t index) {
  if (index >= kMaxNativeLayers) return 0;
  const double ratio = parameters.tightening_ratio;
  // With an explicit tightening ratio r, layer i gets the share (1 - r) r^i of the error rate.
  // These shares also sum to one (Almeida et al. 2007).
  return parameters.error_rate *
         (ratio > 0 ? (1 - ratio) * std::pow(ratio, index) : share_of(parameters.capacity, index));
}

bool NativeLayout::is_valid(const Geometry& geometry) {
  return geometry.bit_count % kLineBits == 0 && has_valid_lines(geometry, kMaxBitsPerLine);
}

double NativeLayout::predicted_error(const Geometry& geometry, uint64_t item_count) {
  const LineModel model{double(geometry.bit_count / kLineBits), geometry.lines_per_lookup,
                        geometry.hash_count / unsigned{geometry.lines_per_lookup}};
  return model.error_rate(double(item_count));
}

}  // namespace core::bloom
