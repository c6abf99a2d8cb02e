// SPDX-License-Identifier: MIT
#include "core/bitfield.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "core/number.h"

namespace core::bitmap {
namespace {

constexpr unsigned kMaxSignedBits = 64;
constexpr unsigned kMaxUnsignedBits = 63;
// An unaligned field of 64 bits covers nine bytes.
constexpr size_t kWindowBytes = 9;

struct Bounds {
  int64_t min;
  int64_t max;
};

Bounds bounds_of(FieldType type) {
  if (!type.is_signed) return {0, static_cast<int64_t>((uint64_t{1} << type.bits) - 1)};
  const auto max = static_cast<int64_t>((uint64_t{1} << (type.bits - 1)) - 1);
  return {-max - 1, max};
}

// Returns the low bits of `word` as a value of the field's type: sign-extended if the type is
// signed, else zero-extended.
int64_t extend(FieldType type, uint64_t word) {
  const unsigned unused = 64U - type.bits;
  const uint64_t top = word << unused;
  return type.is_signed ? static_cast<int64_t>(top) >> unused : static_cast<int64_t>(top >> unused);
}

uint64_t big_endian(uint64_t word) {
  if constexpr (std::endian::native == std::endian::little) return __builtin_bswap64(word);
  return word;
}

// The bytes that a field covers, as 72 bits: eight bytes in `head`, one in `tail`.
struct Window {
  std::array<uint8_t, kWindowBytes> bytes{};

  uint64_t head() const {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    return big_endian(word);
  }
  void set_head(uint64_t word) {
    word = big_endian(word);
    std::memcpy(bytes.data(), &word, sizeof(word));
  }
};

size_t touched_bytes(FieldType type, unsigned shift) {
  return (shift + type.bits + 7U) / 8;
}

Error bad_offset() {
  return {std::string(kInvalidBitOffset)};
}

Result<uint64_t> scale_offset(std::string_view digits, uint64_t scale, uint64_t limit_bits) {
  const auto number = parse_int64(digits);
  uint64_t offset = 0;
  if (!number || *number < 0) return bad_offset();
  if (__builtin_mul_overflow(static_cast<uint64_t>(*number), scale, &offset)) return bad_offset();
  if (offset >= limit_bits) return bad_offset();
  return offset;
}

// `wrapped` is the exact result modulo 2^64. Its low bits are correct even after an overflow.
std::optional<int64_t> resolve(FieldType type, uint64_t wrapped, int64_t bound, Overflow overflow) {
  switch (overflow) {
    case Overflow::kWrap:
      return extend(type, wrapped);
    case Overflow::kSaturate:
      return bound;
    case Overflow::kFail:
      break;
  }
  return std::nullopt;
}

}  // namespace

Result<FieldType> parse_field_type(std::string_view text) {
  const bool is_signed = text.starts_with('i');
  if (is_signed || text.starts_with('u')) {
    const auto bits = parse_int64(text.substr(1));
    const unsigned max_bits = is_signed ? kMaxSignedBits : kMaxUnsignedBits;
    if (bits && *bits >= 1 && *bits <= max_bits) {
      return FieldType{is_signed, static_cast<uint8_t>(*bits)};
    }
  }
  return Error{std::string(kInvalidFieldType)};
}

Result<uint64_t> parse_bit_offset(std::string_view text, uint64_t limit_bits) {
  return scale_offset(text, 1, limit_bits);
}

Result<uint64_t> parse_field_offset(std::string_view text, FieldType type, uint64_t limit_bits) {
  if (text.starts_with('#')) return scale_offset(text.substr(1), type.bits, limit_bits);
  return scale_offset(text, 1, limit_bits);
}

int64_t read_field(std::span<const uint8_t> bytes, FieldType type, uint64_t bit_offset) {
  const uint64_t index = bit_offset / 8;
  if (index >= bytes.size()) return 0;
  Window window;
  // A copy of constant size compiles to two loads. Only fields near the end of `bytes` need a call
  // of memcpy().
  if (bytes.size() - index >= kWindowBytes) {
    std::memcpy(window.bytes.data(), bytes.data() + index, kWindowBytes);
  } else {
    std::memcpy(window.bytes.data(), bytes.data() + index, bytes.size() - index);
  }
  const auto shift = static_cast<unsigned>(bit_offset % 8);
  // The ninth byte supplies the bits that the left shift cleared. With shift 0 no bit was cleared,
  // and the ninth byte is not used.
  const uint64_t word = (window.head() << shift) | (unsigned{window.bytes[8]} >> (8 - shift));
  return extend(type, word >> (64U - type.bits));
}

void write_field(std::span<uint8_t> bytes, FieldType type, uint64_t bit_offset, int64_t value) {
  const uint64_t index = bit_offset / 8;
  const auto shift = static_cast<unsigned>(bit_offset % 8);
  const size_t touched = touched_bytes(type, shift);
  assert(index < bytes.size() && touched <= bytes.size() - index);
  Window window;
  std::memcpy(window.bytes.data(), bytes.data() + index, touched);
  // `field` holds the value in the top bits of a word. `mask` has these top bits set.
  const unsigned unused = 64U - type.bits;
  const uint64_t field = static_cast<uint64_t>(value) << unused;
  const uint64_t mask = ~uint64_t{0} << unused;
  window.set_head((window.head() & ~(mask >> shift)) | (field >> shift));
  // If the right shift drops the field's lowest bits, these bits are stored in the ninth byte.
  const auto spilled_mask = static_cast<uint8_t>(mask << (8 - shift));
  const auto spilled = static_cast<uint8_t>(field << (8 - shift));
  window.bytes[8] = static_cast<uint8_t>((window.bytes[8] & ~spilled_mask) | spilled);
  std::memcpy(bytes.data() + index, window.bytes.data(), touched);
}

std::optional<int64_t> fit_value(FieldType type, int64_t value, Overflow overflow) {
  const Bounds bounds = bounds_of(type);
  if (value >= bounds.min && value <= bounds.max) return value;
  // An unsigned field treats a negative value as a huge value, so it saturates at the maximum. A
  // signed field also saturates at the maximum if max - value does not fit 64 bits. Both results
  // equal those of Redis.
  const bool is_difference_too_large = value < bounds.max - std::numeric_limits<int64_t>::max();
  const bool is_low = type.is_signed && value < bounds.min && !is_difference_too_large;
  return resolve(type, static_cast<uint64_t>(value), is_low ? bounds.min : bounds.max, overflow);
}

std::optional<int64_t> increment_value(FieldType type, int64_t value, int64_t increment,
                                       Overflow overflow) {
  const Bounds bounds = bounds_of(type);
  int64_t sum = 0;
  const bool is_beyond_64_bits = __builtin_add_overflow(value, increment, &sum);
  if (!is_beyond_64_bits && sum >= bounds.min && sum <= bounds.max) return sum;
  return resolve(type, static_cast<uint64_t>(sum), increment < 0 ? bounds.min : bounds.max,
                 overflow);
}

}  // namespace core::bitmap
