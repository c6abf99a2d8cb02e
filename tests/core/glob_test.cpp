// SPDX-License-Identifier: MIT
//
// Expected answers of the odd cases were given by Redis 7.0.15.
#include "core/glob.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

namespace core {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kGlobSeed = 0x910b;
constexpr auto kPatience = std::chrono::milliseconds(500);

// Runs `pattern` and fails when it takes far longer than one walk over the text.
bool matches_in_time(std::string_view pattern, std::string_view text) {
  const auto start = std::chrono::steady_clock::now();
  const bool is_match = glob_matches(pattern, text);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience);
  return is_match;
}

// The naive twin for patterns without sets and escapes.
bool naive_matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return naive_matches(pattern.substr(1), text) ||
           (!text.empty() && naive_matches(pattern, text.substr(1)));
  }
  if (text.empty() || (pattern[0] != '?' && pattern[0] != text[0])) return false;
  return naive_matches(pattern.substr(1), text.substr(1));
}

TEST(Glob, LiteralsMatchThemselves) {
  EXPECT_TRUE(glob_matches("abc", "abc"));
  EXPECT_FALSE(glob_matches("abc", "ab"));
  EXPECT_FALSE(glob_matches("abc", "abcd"));
  EXPECT_FALSE(glob_matches("abc", "ABC"));
}

TEST(Glob, StarTakesAnyRun) {
  EXPECT_TRUE(glob_matches("a*", "a"));
  EXPECT_TRUE(glob_matches("*c", "abc"));
  EXPECT_TRUE(glob_matches("a**c", "abbc"));
  EXPECT_TRUE(glob_matches("*ab*ab", "abaab"));
  EXPECT_FALSE(glob_matches("a*d", "abc"));
}

TEST(Glob, QuestionMarkTakesOneCharacter) {
  EXPECT_TRUE(glob_matches("h?llo", "hello"));
  EXPECT_FALSE(glob_matches("h?llo", "hllo"));
  EXPECT_TRUE(glob_matches("*?", "a"));
  EXPECT_FALSE(glob_matches("*??", "a"));
}

TEST(Glob, SetsHoldCharactersAndRanges) {
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
  EXPECT_TRUE(glob_matches("[a-]", "^"));  // The range ends at ']', and so does the pattern.
  EXPECT_TRUE(glob_matches("[\\", "\\"));
  EXPECT_TRUE(glob_matches("[\xf0-\x10]", "\x01"));  // Bytes compare as signed characters.
  EXPECT_FALSE(glob_matches("[\x10-\xf0]", "\x7f"));
}

TEST(Glob, BackslashTakesTheNextCharacterLiterally) {
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
  EXPECT_FALSE(glob_matches("[\\M]ax", "max", LetterCase::kIgnored));  // Escaped: kept exact.
}

TEST(Glob, RandomPatternsAgreeWithTheNaiveTwin) {
  SCOPED_TRACE(kGlobSeed);
  std::mt19937_64 random(kGlobSeed);
  const auto pick = [&](std::string_view alphabet, size_t longest) {
    std::string text(1 + random() % longest, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    return text;
  };
  for (int round = 0; round < 50'000; ++round) {
    const std::string pattern = pick("ab*?", 7);
    const std::string text = pick("ab", 8);
    ASSERT_EQ(glob_matches(pattern, text), naive_matches(pattern, text)) << pattern << ' ' << text;
  }
}

TEST(Glob, ManyStarsAreNoBomb) {
  std::string pattern;
  for (int star = 0; star < 1'000; ++star) pattern += "a*";
  pattern += 'b';
  EXPECT_FALSE(matches_in_time(pattern, std::string(100'000, 'a')));
  EXPECT_TRUE(matches_in_time(pattern, std::string(100'000, 'a') + 'b'));
  EXPECT_TRUE(matches_in_time(std::string(1'000'000, '*'), "a"));
}

TEST(Glob, MillionQuestionMarksAreNoBomb) {
  const std::string marks(1'000'000, '?');
  EXPECT_TRUE(matches_in_time(marks, std::string(1'000'000, 'a')));
  EXPECT_FALSE(matches_in_time("*" + marks, std::string(999'999, 'a')));
  EXPECT_FALSE(matches_in_time("*" + marks + "b", std::string(2'000'000, 'a')));
  EXPECT_FALSE(matches_in_time(std::string(1'000'000, '['), "a"));
}

}  // namespace
}  // namespace core
