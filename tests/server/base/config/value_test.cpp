// SPDX-License-Identifier: MIT
#include "server/base/config/value.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <string_view>
#include <vector>

namespace server {
namespace {

using namespace std::string_view_literals;

// Returns the canonical text of the value, or "!" and the reason for its rejection.
std::string text_of(const Option& option, const std::vector<std::string>& words,
                    const std::string& current = "") {
  const auto value = parse_value(option, words, current);
  return value ? value->text : "!" + value.error().reason;
}

TEST(MemoryText, UnitsAreThoseOfRedisConf) {
  EXPECT_EQ(parse_memory("0").bytes, 0);
  EXPECT_EQ(parse_memory("512").bytes, 512);
  EXPECT_EQ(parse_memory("512b").bytes, 512);
  EXPECT_EQ(parse_memory("1k").bytes, 1'000);
  EXPECT_EQ(parse_memory("1kb").bytes, 1'024);
  EXPECT_EQ(parse_memory("5m").bytes, 5'000'000);
  EXPECT_EQ(parse_memory("100mb").bytes, 104'857'600);
  EXPECT_EQ(parse_memory("1g").bytes, 1'000'000'000);
  EXPECT_EQ(parse_memory("1GB").bytes, 1'073'741'824);
  EXPECT_EQ(parse_memory("007Kb").bytes, 7'168);
  EXPECT_EQ(parse_memory("9223372036854775807").bytes, kInt64Max);
}

// Redis reads "gb" and "" as zero, and ignores the text after a zero byte. This server rejects such
// values, because they are surely errors.
TEST(MemoryText, AllElseIsMalformed) {
  for (const auto text : {""sv, "gb"sv, "-1"sv, "+1"sv, " 1"sv, "1 gb"sv, "1tb"sv, "1.5gb"sv,
                          "1gb\0"sv, "b"sv, "1kk"sv}) {
    EXPECT_EQ(parse_memory(text).bytes, std::nullopt) << text;
    EXPECT_FALSE(parse_memory(text).overflowed) << text;
  }
}

// If a size exceeds the range of int64_t, Redis wraps it around or caps it, and may run with a tiny
// limit. This server reports that the size is too large.
TEST(MemoryText, SeparatesTooLargeFromMalformed) {
  for (const auto text : {"9223372036854775808"sv, "18446744073709551616"sv, "17179869184gb"sv,
                          "8589934592gb"sv, "99999999999999999999999k"sv}) {
    EXPECT_EQ(parse_memory(text).bytes, std::nullopt) << text;
    EXPECT_TRUE(parse_memory(text).overflowed) << text;
  }
}

TEST(MemoryText, IsWrittenWithTheLargestUnitThatIsExact) {
  EXPECT_EQ(format_memory(0), "0");
  EXPECT_EQ(format_memory(1000), "1000");
  EXPECT_EQ(format_memory(1024), "1kb");
  EXPECT_EQ(format_memory(1025), "1025");
  EXPECT_EQ(format_memory(3 << 20), "3mb");
  EXPECT_EQ(format_memory(int64_t{1} << 30), "1gb");
  EXPECT_EQ(format_memory((int64_t{1} << 30) + 1024), "1048577kb");
  for (const int64_t bytes : {int64_t{0}, int64_t{7}, int64_t{1} << 40, kInt64Max}) {
    EXPECT_EQ(parse_memory(format_memory(bytes)).bytes, bytes);
  }
}

TEST(FloatText, IsFiniteAndDecimal) {
  EXPECT_EQ(parse_float("0.01"), 0.01);
  EXPECT_EQ(parse_float("-2.5e+3"), -2500.0);
  EXPECT_EQ(parse_float(".5"), 0.5);
  EXPECT_EQ(parse_float("1."), 1.0);
  EXPECT_EQ(parse_float("1e-310"), 1e-310);
  for (const auto text : {""sv, "+1"sv, " 1"sv, "1 "sv, "1x"sv, "0x10"sv, "0X1p3"sv, "inf"sv,
                          "-inf"sv, "nan"sv, "1e400"sv, "1e-400"sv, "1\0"sv, "1,5"sv}) {
    EXPECT_EQ(parse_float(text), std::nullopt) << text;
  }
}

TEST(ParseValue, BoolIsYesOrNo) {
  const Option option{.name = "a", .kind = OptionKind::kBool};
  EXPECT_EQ(text_of(option, {"YES"}), "yes");
  EXPECT_EQ(parse_value(option, std::vector<std::string>{"yes"}, "")->scalar, 1);
  EXPECT_EQ(parse_value(option, std::vector<std::string>{"No"}, "")->scalar, 0);
  for (const char* word : {"", "1", "true", "yes "}) {
    EXPECT_EQ(text_of(option, {word}), "!" + std::string(kNoBoolean)) << word;
  }
}

TEST(ParseValue, IntegersHaveOneSpellingAndARange) {
  const Option option{.name = "a", .kind = OptionKind::kInteger, .min = -5, .max = 100};
  EXPECT_EQ(text_of(option, {"-5"}), "-5");
  EXPECT_EQ(text_of(option, {"100"}), "100");
  for (const char* word : {"-6", "101", "9223372036854775807"}) {
    EXPECT_EQ(text_of(option, {word}), "!argument must be between -5 and 100 inclusive") << word;
  }
  for (const char* word : {"", "+1", "01", "-0", "1.0", "0x1", " 1", "9223372036854775808"}) {
    EXPECT_EQ(text_of(option, {word}), "!" + std::string(kNoInteger)) << word;
  }
}

TEST(ParseValue, MemoryIsShownInBytes) {
  const Option option{.name = "a", .kind = OptionKind::kMemory, .min = 1024, .max = 1 << 20};
  EXPECT_EQ(text_of(option, {"1MB"}), "1048576");
  EXPECT_EQ(text_of(option, {"x"}), "!" + std::string(kNoMemoryValue));
  for (const char* word : {"1k", "1gb", "99999999999gb"}) {
    EXPECT_EQ(text_of(option, {word}), "!argument must be between 1024 and 1048576 inclusive");
  }
}

TEST(ParseValue, OctalNumbersKeepTheirBase) {
  const Option option{.name = "a", .kind = OptionKind::kOctal, .min = 0, .max = 0777};
  EXPECT_EQ(text_of(option, {"0700"}), "700");
  EXPECT_EQ(parse_value(option, std::vector<std::string>{"700"}, "")->scalar, 0700);
  EXPECT_EQ(text_of(option, {"1000"}), "!argument must be between 0 and 777 inclusive");
  for (const char* word : {"", "8", "0x7", "7 "}) {
    EXPECT_EQ(text_of(option, {word}), "!" + std::string(kNoOctalNumber)) << word;
  }
}

TEST(ParseValue, FloatsKeepTheirBits) {
  const Option option{.name = "a", .kind = OptionKind::kFloat};
  const auto value = parse_value(option, std::vector<std::string>{"0.10"}, "");
  EXPECT_EQ(value->text, "0.1");
  EXPECT_EQ(std::bit_cast<double>(value->scalar), 0.1);
  EXPECT_EQ(text_of(option, {"inf"}), "!" + std::string(kNoFloat));
}

TEST(ParseValue, ChoicesAreNumberedInTheirOrder) {
  const Option option{.name = "a", .kind = OptionKind::kEnum, .choices = {"first", "second"}};
  EXPECT_EQ(parse_value(option, std::vector<std::string>{"Second"}, "")->scalar, 1);
  EXPECT_EQ(text_of(option, {"third"}), "!" + unknown_choice("first, second").reason);
}

TEST(ParseValue, OneTextIsSplitWhereAnOptionTakesSeveralWords) {
  const Option list{.name = "a", .kind = OptionKind::kList, .multi_argument = true};
  EXPECT_EQ(text_of(list, {"b", "c"}), "b c");
  EXPECT_EQ(parse_single_text(list, "b c", "")->text, "b c");
  EXPECT_EQ(parse_single_text(list, "", "")->text, "");
  const Option text{.name = "a"};
  EXPECT_EQ(parse_single_text(text, "b  c", "")->text, "b  c");
}

TEST(WriteLines, AreReadBackToTheSameValue) {
  EXPECT_EQ(write_lines({.name = "a", .kind = OptionKind::kMemory}, "2097152"),
            std::vector<std::string>{"a 2mb"});
  EXPECT_EQ(write_lines({.name = "a"}, "b \"c"), std::vector<std::string>{R"(a "b \"c")"});
  EXPECT_EQ(write_lines({.name = "a", .kind = OptionKind::kInteger}, "12"),
            std::vector<std::string>{"a 12"});
  EXPECT_EQ(write_lines({.name = "a", .kind = OptionKind::kList}, "b c"),
            std::vector<std::string>{"a b c"});
  EXPECT_EQ(write_lines({.name = "a", .kind = OptionKind::kList}, ""),
            std::vector<std::string>{"a \"\""});
}

}  // namespace
}  // namespace server
