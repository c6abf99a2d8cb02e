// SPDX-License-Identifier: MIT
#include "core/bloom/native_layout.h"

#include <algorithm>

#include "core/bloom/bit_array.h"

namespace core::bloom {

std::optional<Geometry> NativeLayout::size(uint64_t capacity, double error_rate) {
  const auto model = solve_line_model(capacity, std::max(error_rate, kMinErrorRate));
  if (!model || model->line_count > double(BitArray::kMaxBits / kLineBits)) return std::nullopt;
  Geometry geometry;
  geometry.bit_count = static_cast<uint64_t>(model->line_count) * kLineBits;
  geometry.hash_count = static_cast<uint16_t>(model->lines_per_lookup * model->bits_per_line);
  geometry.lines_per_lookup = static_cast<uint8_t>(model->lines_per_lookup);
  return geometry;
}

double NativeLayout::predicted_error(const Geometry& geometry, uint64_t item_count) {
  const LineModel model{double(geometry.bit_count / kLineBits), geometry.lines_per_lookup,
                        geometry.hash_count / unsigned{geometry.lines_per_lookup}};
  return model.error_rate(double(item_count));
}

}  // namespace core::bloom
