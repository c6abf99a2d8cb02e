// SPDX-License-Identifier: MIT
//
// Expected values of the named cases are replies of Redis 7.0.15.
#include "core/bitfield.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace core::bitmap {
namespace {

constexpr uint64_t kBitfieldSeed = 0xf1e1d;
constexpr uint64_t kLimitBits = uint64_t{1} << 32;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

__extension__ typedef __int128 Wide;  // wide enough for every sum of two int64_t
using enum Overflow;

constexpr FieldType i(unsigned bits) {
  return {true, static_cast<uint8_t>(bits)};
}
constexpr FieldType u(unsigned bits) {
  return {false, static_cast<uint8_t>(bits)};
}

std::vector<FieldType> all_types() {
  std::vector<FieldType> types;
  for (unsigned bits = 1; bits <= 64; ++bits) types.push_back(i(bits));
  for (unsigned bits = 1; bits <= 63; ++bits) types.push_back(u(bits));
  return types;
}

Wide min_of(FieldType type) {
  return type.is_signed ? -(Wide{1} << (type.bits - 1)) : Wide{0};
}
Wide max_of(FieldType type) {
  return (Wide{1} << (type.is_signed ? type.bits - 1 : type.bits)) - 1;
}

// Adds multiples of 2^bits until the value is in the field's range. The type Wide cannot overflow
// here.
int64_t naive_wrap(FieldType type, Wide value) {
  const Wide step = Wide{1} << type.bits;
  Wide rest = (value - min_of(type)) % step;
  if (rest < 0) rest += step;
  return static_cast<int64_t>(rest + min_of(type));
}

int64_t naive_read(const std::vector<bool>& bits, FieldType type, uint64_t offset) {
  Wide value = 0;
  for (uint64_t n = offset; n < offset + type.bits; ++n) {
    value = value * 2 + (n < bits.size() && bits[n]);
  }
  return naive_wrap(type, value);
}

// Values just below, at and just above every bound of the type.
std::vector<int64_t> edges_of(FieldType type) {
  std::vector<int64_t> edges = {0, 1, -1, 2, -2, kMin, kMin + 1, kMax - 1, kMax};
  for (const Wide bound : {min_of(type), max_of(type), -max_of(type)}) {
    for (int delta = -1; delta <= 1; ++delta) {
      const Wide edge = bound + delta;
      if (edge >= kMin && edge <= kMax) edges.push_back(static_cast<int64_t>(edge));
    }
  }
  return edges;
}

TEST(ParseFieldType, AcceptsEveryWidthOfRedis) {
  for (const FieldType type : all_types()) {
    const std::string text = fmt::format("{}{}", type.is_signed ? 'i' : 'u', type.bits);
    EXPECT_EQ(parse_field_type(text).value(), type) << text;
  }
}

TEST(ParseFieldType, RejectsOtherTypes) {
  for (const char* text : {"", "i", "u", "i0", "u0", "i65", "u64", "I8", "U8", "x8", "8", "i08",
                           "i+8", "i-8", "i8 ", " i8", "i8x", "u18446744073709551617"}) {
    const auto type = parse_field_type(text);
    ASSERT_TRUE(type.has_error()) << text;
    EXPECT_EQ(type.error().message, kInvalidFieldType);
  }
}

TEST(ParseOffset, AcceptsPlainOffsetsBelowTheLimit) {
  EXPECT_EQ(parse_bit_offset("0", kLimitBits).value(), 0U);
  EXPECT_EQ(parse_bit_offset("4294967295", kLimitBits).value(), 4294967295U);
  EXPECT_EQ(parse_field_offset("4294967295", i(64), kLimitBits).value(), 4294967295U);
}

TEST(ParseOffset, HashOffsetsCountInFields) {
  EXPECT_EQ(parse_field_offset("#0", u(8), kLimitBits).value(), 0U);
  EXPECT_EQ(parse_field_offset("#3", u(5), kLimitBits).value(), 15U);
  EXPECT_EQ(parse_field_offset("#536870911", u(8), kLimitBits).value(), 4294967288U);
}

TEST(ParseOffset, RejectsOffsetsNotBelowTheLimit) {
  for (const char* text : {"", "#", "##1", "-1", "#-1", "01", "+1", " 1", "1 ", "x", "4294967296",
                           "#536870912", "9223372036854775808"}) {
    const auto offset = parse_field_offset(text, u(8), kLimitBits);
    ASSERT_TRUE(offset.has_error()) << text;
    EXPECT_EQ(offset.error().message, kInvalidBitOffset);
  }
  EXPECT_TRUE(parse_bit_offset("#1", kLimitBits).has_error());
  EXPECT_TRUE(parse_bit_offset("0", 0).has_error());
}

TEST(ParseOffset, ScaledOffsetsNeverWrap) {
  constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  // Offset #2^58 of a 64-bit field is bit 2^64, which does not fit into 64 bits.
  EXPECT_TRUE(parse_field_offset("#288230376151711744", i(64), kNoLimit).has_error());
  EXPECT_TRUE(parse_field_offset("#288230376151711745", i(64), kLimitBits).has_error());
  EXPECT_TRUE(parse_field_offset("#9223372036854775807", i(64), kLimitBits).has_error());
  EXPECT_TRUE(parse_field_offset("#9223372036854775807", u(63), kNoLimit).has_error());
}

TEST(Field, BitsBeyondTheEndAreZero) {
  const std::vector<uint8_t> bytes{0xff};
  EXPECT_EQ(read_field(bytes, u(8), 4), 0xf0);
  EXPECT_EQ(read_field(bytes, i(64), 0), kMin >> 7);
  EXPECT_EQ(read_field(bytes, i(64), 8), 0);
  EXPECT_EQ(read_field(bytes, u(63), std::numeric_limits<uint64_t>::max()), 0);
  EXPECT_EQ(read_field({}, i(1), 0), 0);
}

TEST(Field, EveryWidthAndOffsetAgreesWithTheModel) {
  SCOPED_TRACE(kBitfieldSeed);
  std::mt19937_64 random(kBitfieldSeed);
  constexpr uint64_t kBits = 19 * 8;
  std::vector<uint8_t> bytes(kBits / 8);
  std::vector<bool> twin(kBits);
  for (const FieldType type : all_types()) {
    for (uint64_t offset = 0; offset + type.bits <= kBits; ++offset) {
      const auto value = static_cast<int64_t>(random());
      write_field(bytes, type, offset, value);
      for (uint64_t n = 0; n < type.bits; ++n) {
        twin[offset + n] = (static_cast<uint64_t>(value) >> (type.bits - 1 - n)) & 1;
      }
      ASSERT_EQ(read_field(bytes, type, offset), naive_wrap(type, value));
      const uint64_t probe = random() % (kBits + 70);
      ASSERT_EQ(read_field(bytes, type, probe), naive_read(twin, type, probe));
    }
    ASSERT_EQ(naive_read(twin, u(63), 0), read_field(bytes, u(63), 0));
  }
}

TEST(Field, FittingValuesIgnoreTheOverflowMode) {
  for (const FieldType type : all_types()) {
    for (const int64_t value : edges_of(type)) {
      if (value < min_of(type) || value > max_of(type)) continue;
      for (const Overflow overflow : {kWrap, kSaturate, kFail}) {
        ASSERT_EQ(fit_value(type, value, overflow), value);
      }
    }
  }
}

TEST(Field, SetWrapsSaturatesOrFails) {
  EXPECT_EQ(fit_value(u(8), 256, kWrap), 0);
  EXPECT_EQ(fit_value(u(8), 300, kSaturate), 255);
  EXPECT_EQ(fit_value(u(8), 300, kFail), std::nullopt);
  EXPECT_EQ(fit_value(i(8), 128, kWrap), -128);
  EXPECT_EQ(fit_value(i(8), -129, kWrap), 127);
  EXPECT_EQ(fit_value(i(8), 128, kSaturate), 127);
  EXPECT_EQ(fit_value(i(8), -129, kSaturate), -128);
  EXPECT_EQ(fit_value(i(1), 1, kSaturate), 0);
}

TEST(Field, UnsignedSetTreatsNegativeAsHuge) {
  EXPECT_EQ(fit_value(u(8), -1, kWrap), 255);
  EXPECT_EQ(fit_value(u(8), -1, kSaturate), 255);
  EXPECT_EQ(fit_value(u(63), kMin, kSaturate), kMax);
  EXPECT_EQ(fit_value(u(8), -1, kFail), std::nullopt);
}

TEST(Field, SetSaturatesLowestValuesAtTheMaximum) {
  EXPECT_EQ(fit_value(i(8), kMin, kSaturate), 127);
  EXPECT_EQ(fit_value(i(8), kMin + 127, kSaturate), 127);
  EXPECT_EQ(fit_value(i(8), kMin + 128, kSaturate), -128);
}

TEST(Field, SetWrapsLikeTheNaiveModel) {
  for (const FieldType type : all_types()) {
    for (const int64_t value : edges_of(type)) {
      ASSERT_EQ(fit_value(type, value, kWrap), naive_wrap(type, value));
    }
  }
}

TEST(Field, IncrementsAgreeWithTheNaiveModel) {
  for (const FieldType type : all_types()) {
    for (const int64_t value : edges_of(type)) {
      if (value < min_of(type) || value > max_of(type)) continue;
      for (const int64_t increment : edges_of(type)) {
        const Wide sum = Wide{value} + increment;
        const bool fits = sum >= min_of(type) && sum <= max_of(type);
        const Wide bound = sum < min_of(type) ? min_of(type) : fits ? sum : max_of(type);
        ASSERT_EQ(increment_value(type, value, increment, kWrap), naive_wrap(type, sum));
        ASSERT_EQ(increment_value(type, value, increment, kSaturate), static_cast<int64_t>(bound));
        ASSERT_EQ(increment_value(type, value, increment, kFail).has_value(), fits);
      }
    }
  }
}

}  // namespace
}  // namespace core::bitmap
