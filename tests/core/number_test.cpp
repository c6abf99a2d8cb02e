// SPDX-License-Identifier: MIT
//
// Tests of numbers as text. The expected answers come from Redis 7.0.15.
#include "core/number.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

namespace core {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kNumberSeed = 0x2b3;

TEST(ParseInt64, AcceptsTheWholeRange) {
  EXPECT_EQ(parse_int64("0"), 0);
  EXPECT_EQ(parse_int64("7"), 7);
  EXPECT_EQ(parse_int64("-1"), -1);
  EXPECT_EQ(parse_int64("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_int64("-9223372036854775808"), std::numeric_limits<int64_t>::min());
}

TEST(ParseInt64, RejectsNonCanonicalIntegers) {
  for (const auto text : {""sv,
                          "-"sv,
                          "+1"sv,
                          "-0"sv,
                          "00"sv,
                          "01"sv,
                          "-01"sv,
                          " 1"sv,
                          "1 "sv,
                          "1\0"sv,
                          "--1"sv,
                          "1.0"sv,
                          "0x1"sv,
                          "a"sv,
                          "1x"sv,
                          "\xb1"sv,
                          "9223372036854775808"sv,
                          "-9223372036854775809"sv,
                          "9999999999999999999"sv,
                          "18446744073709551616"sv,
                          "99999999999999999999"sv,
                          "999999999999999999999999999999"sv}) {
    EXPECT_EQ(parse_int64(text), std::nullopt) << text;
  }
}

TEST(ParseInt64, ParsesFormattedNumbers) {
  SCOPED_TRACE(kNumberSeed);
  std::mt19937_64 random(kNumberSeed);
  for (int round = 0; round < 10'000; ++round) {
    const int64_t value = static_cast<int64_t>(random()) >> (random() % 64);
    ASSERT_EQ(parse_int64(std::to_string(value)), value);
  }
}

TEST(ParseDouble, AcceptsTextsOfStrtod) {
  EXPECT_EQ(parse_double("1.5"), 1.5);
  EXPECT_EQ(parse_double("0.01"), 0.01);
  EXPECT_EQ(parse_double("+1.5e3"), 1500.0);
  EXPECT_EQ(parse_double("0x10"), 16.0);
  EXPECT_EQ(parse_double(".5"), 0.5);
  EXPECT_EQ(parse_double("5."), 5.0);
  EXPECT_EQ(parse_double("0x1p3"), 8.0);
  EXPECT_EQ(parse_double("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_double("Infinity"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_double("5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(parse_double("0." + std::string(1'000, '0') + "1e1001"), 1.0);
  EXPECT_EQ(parse_double("0." + std::string(400, '0')), 0.0);
}

TEST(ParseDouble, RejectsSpacesTrailersAndNan) {
  for (const auto text : {""sv, " 1"sv, "\t1"sv, "1 "sv, "1\0"sv, "1x"sv, "."sv, "1e"sv, "nan"sv,
                          "-nan"sv, "NAN(1)"sv, "1e400"sv, "-1e400"sv, "1e-400"sv, "1,5"sv}) {
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_double(std::string(1'000, '9')), std::nullopt);
}

TEST(ParseLongDouble, AcceptsTextsOfStrtold) {
  EXPECT_EQ(parse_long_double("3.0e3"), 3000.0L);
  EXPECT_EQ(parse_long_double("-0x10"), -16.0L);
  EXPECT_EQ(parse_long_double("1e400"), 1e400L);
  EXPECT_TRUE(std::isinf(parse_long_double("inf").value()));
}

TEST(ParseLongDouble, RejectsSpacesTrailersAndNan) {
  for (const auto text :
       {""sv, " 1"sv, "1 "sv, "1\0"sv, "1x"sv, "nan"sv, "1e5000"sv, "1e-5000"sv}) {
    EXPECT_EQ(parse_long_double(text), std::nullopt) << text;
  }
}

TEST(ParseLongDouble, TextsMustBeShorterThanFiveKilobytes) {
  EXPECT_EQ(parse_long_double(std::string(5'118, '0') + "1"), 1.0L);
  EXPECT_EQ(parse_long_double(std::string(5'119, '0') + "1"), std::nullopt);
}

TEST(FormatLongDouble, IsPlainAndTrimmed) {
  EXPECT_EQ(format_long_double(0.0L), "0");
  EXPECT_EQ(format_long_double(-0.0L), "0");
  EXPECT_EQ(format_long_double(-1e-20L), "0");
  EXPECT_EQ(format_long_double(3.0L), "3");
  EXPECT_EQ(format_long_double(100.0L), "100");
  EXPECT_EQ(format_long_double(10.5L + 0.1L), "10.6");
  EXPECT_EQ(format_long_double(5e3L), "5000");
  EXPECT_EQ(format_long_double(-1.25L), "-1.25");
  EXPECT_EQ(format_long_double(std::numeric_limits<long double>::infinity()), "inf");
  EXPECT_EQ(format_long_double(-std::numeric_limits<long double>::infinity()), "-inf");
}

TEST(FormatLongDouble, HasRoomForTheLargestValue) {
  const std::string text = format_long_double(std::numeric_limits<long double>::lowest());
  EXPECT_EQ(text.size(), 4'934U);
  EXPECT_EQ(parse_long_double(text), std::numeric_limits<long double>::lowest());
}

TEST(FormatDouble, EqualsPrintfWithSeventeenDigits) {
  SCOPED_TRACE(kNumberSeed);
  std::mt19937_64 random(kNumberSeed);
  for (int round = 0; round < 20'000; ++round) {
    const double value = round < 1'000 ? (round - 500) / 8.0 : std::bit_cast<double>(random());
    if (std::isnan(value)) continue;
    std::array<char, 64> expected;
    std::snprintf(expected.data(), expected.size(), "%.17g", value);
    ASSERT_EQ(format_double(value), expected.data());
  }
  EXPECT_EQ(format_double(0.1), "0.10000000000000001");
  EXPECT_EQ(format_double(-0.0), "-0");
  EXPECT_EQ(format_double(1e20), "1e+20");
  EXPECT_EQ(format_double(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(format_double(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(format_double(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

}  // namespace
}  // namespace core
