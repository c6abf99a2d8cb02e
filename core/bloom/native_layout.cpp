// SPDX-License-Identifier: MIT
#include "core/bloom/native_layout.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/bloom/bit_array.h"

namespace core::bloom {
namespace {

std::optional<Geometry> solve_geometry(uint64_t capacity, double error_rate) {
  const auto model = solve_line_model(capacity, std::max(error_rate, NativeLayout::kMinErrorRate));
  if (!model || model->line_count > double(BitArray::kMaxBits / kLineBits)) return std::nullopt;
  Geometry geometry;
  geometry.bit_count = static_cast<uint64_t>(model->line_count) * kLineBits;
  geometry.hash_count = static_cast<uint16_t>(model->lines_per_lookup * model->bits_per_line);
  geometry.lines_per_lookup = static_cast<uint8_t>(model->lines_per_lookup);
  return geometry;
}

struct SolvedSize {
  uint64_t capacity = 0;
  double error_rate = 0;
  std::optional<Geometry> geometry;
};

}  // namespace

std::optional<Geometry> NativeLayout::size(uint64_t capacity, double error_rate) {
  // Solving takes longer than all else about a new filter, and most filters of a server are alike.
  constexpr size_t kSizesKept = 16;
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  thread_local std::array<SolvedSize, kSizesKept> solved;
  const uint64_t mixed = (capacity ^ std::bit_cast<uint64_t>(error_rate)) * kMultiplier;
  SolvedSize& size = solved[mixed >> 60];
  if (size.capacity != capacity || size.error_rate != error_rate) {
    size = {capacity, error_rate, solve_geometry(capacity, error_rate)};
  }
  return size.geometry;
}

double NativeLayout::predicted_error(const Geometry& geometry, uint64_t item_count) {
  const LineModel model{double(geometry.bit_count / kLineBits), geometry.lines_per_lookup,
                        geometry.hash_count / unsigned{geometry.lines_per_lookup}};
  return model.error_rate(double(item_count));
}

}  // namespace core::bloom
