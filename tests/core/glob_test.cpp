// SPDX-License-Identifier: MIT
//
// Tests of glob patterns. The expected answers of the edge cases come from Redis 7.0.15.
#include "core/glob.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "tests/support/cpu_time.h"
#include "tests/support/naive_glob.h"
#include "tests/support/sanitized.h"

namespace core {
namespace {

using namespace std::string_view_literals;
using support::cpu_ms;
using support::naive_matches;

constexpr uint64_t kGlobSeed = 0x910b;
// Limit of CPU time for an unoptimized build. An optimized build needs a tenth of it.
constexpr double kPatienceMs = support::rounds(500.0, 20'000.0);
constexpr size_t kLongText = 200'000;

bool glob_matches(std::string_view pattern, std::string_view text,
                  LetterCase letter_case = LetterCase::kExact) {
  return Glob(pattern, letter_case).matches(text);
}

// Compiles and matches `pattern`. The test fails if that exceeds the time limit.
bool matches_in_time(std::string_view pattern, std::string_view text,
                     LetterCase letter_case = LetterCase::kExact) {
  const double start = cpu_ms();
  const bool is_match = glob_matches(pattern, text, letter_case);
  EXPECT_LT(cpu_ms() - start, kPatienceMs);
  return is_match;
}

TEST(Glob, LiteralsMatchThemselves) {
  EXPECT_TRUE(glob_matches("abc", "abc"));
  EXPECT_FALSE(glob_matches("abc", "ab"));
  EXPECT_FALSE(glob_matches("abc", "abcd"));
  EXPECT_FALSE(glob_matches("abc", "ABC"));
}

TEST(Glob, StarMatchesAnyRun) {
  EXPECT_TRUE(glob_matches("a*", "a"));
  EXPECT_TRUE(glob_matches("*c", "abc"));
  EXPECT_TRUE(glob_matches("a**c", "abbc"));
  EXPECT_TRUE(glob_matches("*ab*ab", "abaab"));
  EXPECT_FALSE(glob_matches("a*d", "abc"));
}

TEST(Glob, QuestionMarkMatchesOneCharacter) {
  EXPECT_TRUE(glob_matches("h?llo", "hello"));
  EXPECT_FALSE(glob_matches("h?llo", "hllo"));
  EXPECT_TRUE(glob_matches("*?", "a"));
  EXPECT_FALSE(glob_matches("*??", "a"));
}

TEST(Glob, SetsMatchCharactersAndRanges) {
  EXPECT_TRUE(glob_matches("h[ae]llo", "hallo"));
  EXPECT_FALSE(glob_matches("h[ae]llo", "hillo"));
  EXPECT_TRUE(glob_matches("[a-c]", "b"));
  EXPECT_TRUE(glob_matches("[c-a]", "b"));
  EXPECT_TRUE(glob_matches("[^e]", "a"));
  EXPECT_FALSE(glob_matches("[^e]", "e"));
  EXPECT_TRUE(glob_matches("[\\]]", "]"));
}

TEST(Glob, OddSetsMatchAsInRedis) {
  EXPECT_FALSE(glob_matches("[", "["));
  EXPECT_TRUE(glob_matches("[a", "a"));
  EXPECT_FALSE(glob_matches("[a", "ab"));
  EXPECT_TRUE(glob_matches("[^", "a"));
  EXPECT_FALSE(glob_matches("[]", "a"));
  EXPECT_FALSE(glob_matches("[]a]", "a"));
  EXPECT_TRUE(glob_matches("[^]", "a"));
  EXPECT_TRUE(glob_matches("[a-", "-"));
  EXPECT_TRUE(glob_matches("[a-]", "^"));  // Without a ']' the set extends to the end.
  EXPECT_TRUE(glob_matches("[\\", "\\"));
  EXPECT_TRUE(glob_matches("[\xf0-\x10]", "\x01"));  // as in Redis, bytes are signed: 0xf0 is -16
  EXPECT_FALSE(glob_matches("[\x10-\xf0]", "\x7f"));
}

TEST(Glob, BackslashEscapesTheNextCharacter) {
  EXPECT_TRUE(glob_matches("\\*", "*"));
  EXPECT_FALSE(glob_matches("\\*", "a"));
  EXPECT_TRUE(glob_matches("a\\", "a\\"));
  EXPECT_TRUE(glob_matches("\\a", "a"));
}

TEST(Glob, EmptyTextMatchesOnlyTheEmptyPattern) {
  EXPECT_TRUE(glob_matches("", ""));
  EXPECT_FALSE(glob_matches("*", ""));
  EXPECT_FALSE(glob_matches("", "a"));
}

TEST(Glob, ZeroBytesAreOrdinary) {
  EXPECT_TRUE(glob_matches("a\0*"sv, "a\0b"sv));
  EXPECT_FALSE(glob_matches("a\0b"sv, "a\0c"sv));
}

TEST(Glob, CaseIsIgnoredOnRequest) {
  EXPECT_TRUE(glob_matches("MAX*", "maxmemory", LetterCase::kIgnored));
  EXPECT_TRUE(glob_matches("[A-M]ax", "Max", LetterCase::kIgnored));
  EXPECT_FALSE(glob_matches("[^m]ax", "Max", LetterCase::kIgnored));
  // As in Redis, kIgnored does not ignore the case of an escaped character in a set.
  EXPECT_FALSE(glob_matches("[\\M]ax", "max", LetterCase::kIgnored));
}

TEST(Glob, RandomPatternsAgreeWithTheNaiveModel) {
  SCOPED_TRACE(kGlobSeed);
  std::mt19937_64 random(kGlobSeed);
  const auto pick = [&](std::string_view alphabet, size_t longest) {
    std::string text(1 + random() % longest, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    return text;
  };
  for (int round = 0; round < 200'000; ++round) {
    const bool is_plain = round % 2 == 0;
    const bool ignores_case = round % 4 == 3;
    const std::string pattern = is_plain ? pick("ab*?", 9) : pick("aBc*?[]^-\\\xe4", 12);
    const std::string text = is_plain ? pick("ab", 9) : pick("aAbBc-^]\xe4\xc4", 6);
    const auto letter_case = ignores_case ? LetterCase::kIgnored : LetterCase::kExact;
    ASSERT_EQ(glob_matches(pattern, text, letter_case), naive_matches(pattern, text, ignores_case))
        << pattern << ' ' << text;
  }
}

std::string repeated(std::string_view part, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

TEST(Glob, ManyStarsTakeBoundedTime) {
  const std::string text(kLongText, 'a');
  for (const auto count : {2, 1'000, 25'000, 100'000}) {
    EXPECT_FALSE(matches_in_time(repeated("a*", count) + 'b', text));
    EXPECT_FALSE(matches_in_time(repeated("*a", count) + "b*", text));
    EXPECT_TRUE(matches_in_time(repeated("a*", count) + 'b', text + 'b'));
    EXPECT_TRUE(matches_in_time(repeated("*a", count) + "b*", text + "bb"));
  }
  EXPECT_TRUE(matches_in_time(std::string(1'000'000, '*'), "a"));
}

TEST(Glob, LongRunsTakeBoundedTime) {
  const std::string text(kLongText, 'a');
  for (const auto count : {100, 10'000, 90'000}) {
    EXPECT_FALSE(matches_in_time("*" + std::string(count, 'a') + "b*", text));
    EXPECT_FALSE(matches_in_time("*b" + std::string(count, 'a') + "*", text));
    EXPECT_FALSE(matches_in_time("*" + repeated("?a", count / 2) + "b*", text));
    EXPECT_FALSE(matches_in_time("*a" + std::string(count, '?') + "b*", text));
    EXPECT_FALSE(matches_in_time("*" + repeated("[ac]", count) + "b*", text));
  }
}

TEST(Glob, LongSetsTakeBoundedTime) {
  const std::string text(kLongText, 'a');
  EXPECT_FALSE(matches_in_time("*[" + std::string(1'000'000, 'b') + "]*", text));
  EXPECT_FALSE(matches_in_time("*[" + repeated("b-\x7f", 300'000) + "]*", text));
  EXPECT_FALSE(matches_in_time(repeated("[ab]*", 100'000) + "c", text));
  EXPECT_FALSE(matches_in_time(repeated("[]", 500'000), text));
  EXPECT_FALSE(matches_in_time(repeated("[b-d]", 20'000), "maxmemory", LetterCase::kIgnored));
}

TEST(Glob, MillionQuestionMarksTakeBoundedTime) {
  const std::string marks(1'000'000, '?');
  EXPECT_TRUE(matches_in_time(marks, std::string(1'000'000, 'a')));
  EXPECT_FALSE(matches_in_time("*" + marks, std::string(999'999, 'a')));
  EXPECT_FALSE(matches_in_time("*" + marks + "b", std::string(2'000'000, 'a')));
  EXPECT_TRUE(matches_in_time("*" + marks + "b*", std::string(1'500'000, 'a') + "bb"));
  EXPECT_FALSE(matches_in_time(std::string(1'000'000, '['), "a"));
}

// A run (the elements between two stars of a pattern) of at most kStepsPerByte elements is found at
// any position of a long text. Longer runs are found in texts of at most 512 bytes.
TEST(Glob, StepLimitAllowsShortRunsAndTexts) {
  const std::string run = "a?" + std::string(Glob::kStepsPerByte - 3, 'a') + "b";
  ASSERT_EQ(run.size(), Glob::kStepsPerByte);
  EXPECT_TRUE(glob_matches("*" + run + "*", std::string(kLongText, 'a') + "b"));
  const std::string half = repeated("a?", 127) + "b";
  EXPECT_TRUE(glob_matches("*" + half + "*", std::string(511, 'a') + "b"));
}

TEST(Glob, HeadOfAShortTextEndsInZeros) {
  const std::string bytes = "\xff\x80\x01zyxwvut";
  for (size_t size = 0; size <= bytes.size(); ++size) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(size, sizeof word));
    // The string has the exact size, so that a sanitizer detects reads past its end.
    EXPECT_EQ(Glob::head_of(std::string(bytes, 0, size)), word) << size;
  }
}

// ACL checks call is_prefix_with() first, because matching the whole pattern is slower.
TEST(Glob, PrefixesMatchWithoutTheSlowPath) {
  const auto is_prefix_with = [](std::string_view pattern, std::string_view text) {
    return Glob(pattern).is_prefix_with(text, Glob::head_of(text));
  };
  for (const std::string_view pattern : {"*", "a*", "user:*", "12345678*", "123456789*", "a\\**"}) {
    const std::string plain =
        pattern == "a\\**" ? "a*" : std::string(pattern.substr(0, pattern.size() - 1));
    for (size_t size = 0; size <= plain.size() + 9; ++size) {
      const std::string text = (plain + "xxxxxxxxx").substr(0, size);
      const bool is_match = naive_matches(pattern, text, false) && !text.empty();
      EXPECT_EQ(is_prefix_with(pattern, text), is_match) << pattern << ' ' << text;
      EXPECT_EQ(Glob(pattern).matches(text), is_match) << pattern << ' ' << text;
      if (is_match && !plain.empty()) {
        EXPECT_FALSE(is_prefix_with(pattern, "y" + text.substr(1)));
      }
    }
  }
  // head_of() returns only the first eight bytes of the text, so a longer pattern must also be
  // compared with the text itself.
  EXPECT_TRUE(is_prefix_with("123456789*", "12345678x"));
  EXPECT_FALSE(Glob("123456789*").matches_behind_head("12345678x"));
  for (const std::string_view pattern : {"", "a", "*a", "a?*", "a*b", "[a]*", "?*", "a*b*"}) {
    EXPECT_FALSE(is_prefix_with(pattern, "aaaaaaaaa")) << pattern;
  }
  EXPECT_FALSE(Glob("a*", LetterCase::kIgnored).is_prefix_with("ab", Glob::head_of("ab")));
}

}  // namespace
}  // namespace core
