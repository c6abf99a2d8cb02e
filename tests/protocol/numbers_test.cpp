// SPDX-License-Identifier: MIT
#include "protocol/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace {

using protocol::parse_double;
using protocol::parse_int64;

TEST(NumbersTest, IntegersHaveOneSpelling) {
  EXPECT_EQ(parse_int64("0"), 0);
  EXPECT_EQ(parse_int64("7"), 7);
  EXPECT_EQ(parse_int64("-1"), -1);
  EXPECT_EQ(parse_int64("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_int64("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  for (const char* text : {"",
                           "-",
                           "+1",
                           "-0",
                           "00",
                           "01",
                           "-01",
                           " 1",
                           "1 ",
                           "1x",
                           "x",
                           "1.0",
                           "0x1",
                           "--1",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "9999999999999999999",
                           "18446744073709551616",
                           "99999999999999999999999",
                           "\xb1"}) {
    EXPECT_EQ(parse_int64(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_int64(std::string_view("1\0", 2)), std::nullopt);
}

TEST(NumbersTest, RandomIntegersAreReadBack) {
  constexpr uint64_t kSeed = 23;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const auto value = static_cast<int64_t>(random()) >> (random() % 64);
    ASSERT_EQ(parse_int64(std::to_string(value)), value) << "seed " << kSeed;
  }
}

TEST(NumbersTest, DoublesAreReadAsRedisDoes) {
  EXPECT_EQ(parse_double("0.01"), 0.01);
  EXPECT_EQ(parse_double("+1e3"), 1000);
  EXPECT_EQ(parse_double("0x10"), 16);
  EXPECT_EQ(parse_double("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_double("0." + std::string(400, '0')), 0);
  for (const char* text : {"", " 1", "\t1", "1 ", "1x", "x", "nan", "-nan", "1e999", "1e-999"}) {
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_double(std::string_view("1\0", 2)), std::nullopt);
}

}  // namespace
