// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/fingerprint_table.h"

namespace core::bloom {
namespace {

constexpr bool fits_words_of(unsigned word_bytes, unsigned bucket_bits) {
  for (unsigned bit = 0; bit + bucket_bits <= kLineBits; bit += bucket_bits) {
    if (bit + bucket_bits > (bucket_word_begin(bit, word_bytes) + word_bytes) * 8) return false;
  }
  return true;
}

constexpr BucketShape shape_of(unsigned slots, unsigned bits) {
  BucketShape shape{};
  for (unsigned slot = 0; slot < slots; ++slot) shape.lows |= uint128_t{1} << (slot * bits);
  shape.highs = shape.lows << (bits - 1);
  shape.fingerprints = (uint64_t{1} << bits) - 1;
  shape.bucket_bits = static_cast<uint16_t>(slots * bits);
  shape.buckets_per_line = kLineBits / (slots * bits);
  shape.reciprocal = static_cast<uint64_t>(((uint128_t{1} << 64) + shape.buckets_per_line - 1) /
                                           shape.buckets_per_line);
  shape.slots = static_cast<uint8_t>(slots);
  shape.slot_bits = static_cast<uint8_t>(bits);
  shape.is_narrow = fits_words_of(8, slots * bits);
  return shape;
}

}  // namespace

constinit const BucketShapes kBucketShapes = [] {
  BucketShapes shapes{};
  for (unsigned slots = BucketModel::kSlotsMin; slots <= BucketModel::kSlotsMax; ++slots) {
    for (unsigned bits = BucketModel::kBitsMin; BucketModel::is_shape(slots, bits); ++bits) {
      shapes[slots][bits] = shape_of(slots, bits);
    }
  }
  return shapes;
}();

}  // namespace core::bloom
