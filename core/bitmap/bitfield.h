// SPDX-License-Identifier: MIT
//
// Integers of 1 to 64 bits at any bit offset of a byte range: the arithmetic of BITFIELD.
//
// Invariants: fields are big endian, signed ones in two's complement. Every field value fits an
// int64_t, because unsigned fields have at most 63 bits.
// Thread safety: pure functions; the caller keeps the bytes still.
// Source: Redis' BITFIELD page; odd cases measured on Redis 7.0.15.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/result.h"

namespace core::bitmap {

struct FieldType {
  bool is_signed = false;
  uint8_t bits = 0;
  bool operator==(const FieldType&) const = default;
};

// What becomes of a value that does not fit its field.
enum class Overflow : uint8_t { kWrap, kSaturate, kFail };

// "i1" to "i64" and "u1" to "u63".
Result<FieldType> parse_field_type(std::string_view text);

// A plain offset, as SETBIT takes it. Errors: when it is not an integer in [0, limit_bits).
Result<uint64_t> parse_bit_offset(std::string_view text, uint64_t limit_bits);

// As above, or "#n" for the n-th field of this type. Only the field's first bit has to lie below
// `limit_bits`, as in Redis.
Result<uint64_t> parse_field_offset(std::string_view text, FieldType type, uint64_t limit_bits);

// Bits beyond the end read as zero.
int64_t read_field(std::span<const uint8_t> bytes, FieldType type, uint64_t bit_offset);

// Stores the low `type.bits` bits of `value`. REQUIRES: the field lies within the bytes.
void write_field(std::span<uint8_t> bytes, FieldType type, uint64_t bit_offset, int64_t value);

// What SET writes for `value`; nothing when it does not fit and the overflow is kFail.
std::optional<int64_t> fit_value(FieldType type, int64_t value, Overflow overflow);

// What INCRBY makes of a field that holds `value`; nothing when the sum does not fit and the
// overflow is kFail. REQUIRES: `value` fits the field.
std::optional<int64_t> increment_value(FieldType type, int64_t value, int64_t increment,
                                       Overflow overflow);

}  // namespace core::bitmap
