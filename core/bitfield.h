// SPDX-License-Identifier: MIT
//
// Integers of 1 to 64 bits at any bit offset of a byte range: the arithmetic of BITFIELD.
//
// Invariants: fields are big endian; signed fields use two's complement. Every field value fits an
// int64_t, because unsigned fields have at most 63 bits.
// Thread safety: pure functions; the bytes must not change during a call.
// Source: Redis' BITFIELD page; odd cases measured on Redis 7.0.15.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/result.h"

namespace core::bitmap {

inline constexpr std::string_view kInvalidFieldType =
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 "
    "is.";
inline constexpr std::string_view kInvalidBitOffset =
    "ERR bit offset is not an integer or out of range";

struct FieldType {
  bool is_signed = false;
  uint8_t bits = 0;
  bool operator==(const FieldType&) const = default;
};

// How a value that does not fit its field is handled.
enum class Overflow : uint8_t { kWrap, kSaturate, kFail };

// Accepts "i1" to "i64" and "u1" to "u63".
Result<FieldType> parse_field_type(std::string_view text);

// Parses an offset without '#', like that of SETBIT. Errors: the text is not an integer, or the
// offset is negative or not below `limit_bits`.
Result<uint64_t> parse_bit_offset(std::string_view text, uint64_t limit_bits);

// Parses an offset without '#' like parse_bit_offset(), or "#n" for the offset n * type.bits. As in
// Redis, only the field's first bit must be below `limit_bits`.
Result<uint64_t> parse_field_offset(std::string_view text, FieldType type, uint64_t limit_bits);

// Reads a field. Bits beyond the end of `bytes` count as zero.
int64_t read_field(std::span<const uint8_t> bytes, FieldType type, uint64_t bit_offset);

// Stores the low `type.bits` bits of `value`. REQUIRES: the field lies within the bytes.
void write_field(std::span<uint8_t> bytes, FieldType type, uint64_t bit_offset, int64_t value);

// Returns the value that SET stores for `value`. Returns nullopt if `value` does not fit the field
// and the overflow is kFail.
std::optional<int64_t> fit_value(FieldType type, int64_t value, Overflow overflow);

// Returns the value that INCRBY stores in a field that holds `value`. Returns nullopt if the sum
// does not fit the field and `overflow` is kFail. REQUIRES: `value` fits the field.
std::optional<int64_t> increment_value(FieldType type, int64_t value, int64_t increment,
                                       Overflow overflow);

}  // namespace core::bitmap
