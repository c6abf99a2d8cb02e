// SPDX-License-Identifier: MIT
//
// Expected answers of the odd cases were given by Redis 7.0.15.
#include "core/glob.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>
#include <utility>

#include "tests/support/sanitized.h"

namespace core {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kGlobSeed = 0x910b;
// Of processor time, in a build that is not optimized; an optimized one needs a tenth.
constexpr double kPatienceMs = support::rounds(500.0, 20'000.0);
constexpr size_t kLongText = 200'000;

double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Compiles and runs `pattern`, and fails when that takes long.
bool matches_in_time(std::string_view pattern, std::string_view text,
                     LetterCase letter_case = LetterCase::kExact) {
  const double start = cpu_ms();
  const bool is_match = glob_matches(pattern, text, letter_case);
  EXPECT_LT(cpu_ms() - start, kPatienceMs);
  return is_match;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c;
}

// What a '[' at the beginning of `pattern` says of `c`; moves behind the set.
bool naive_set(std::string_view& pattern, char c, bool ignores_case) {
  const auto fold = [&](char one) { return ignores_case ? lower(one) : one; };
  pattern.remove_prefix(1);
  const bool is_negated = pattern.starts_with('^');
  if (is_negated) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern[0] != ']') {
    if (pattern[0] == '\\' && pattern.size() >= 2) {
      found |= pattern[1] == c;
      pattern.remove_prefix(2);
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      auto low = static_cast<signed char>(pattern[0]);
      auto high = static_cast<signed char>(pattern[2]);
      if (low > high) std::swap(low, high);
      found |= static_cast<signed char>(fold(c)) >= fold(static_cast<char>(low)) &&
               static_cast<signed char>(fold(c)) <= fold(static_cast<char>(high));
      pattern.remove_prefix(3);
    } else {
      found |= fold(pattern[0]) == fold(c);
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return found != is_negated;
}

// The naive twin: Redis' walk over both, trying every length for a star.
bool naive_matches(std::string_view pattern, std::string_view text, bool ignores_case) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return naive_matches(pattern.substr(1), text, ignores_case) ||
           (!text.empty() && naive_matches(pattern, text.substr(1), ignores_case));
  }
  if (text.empty()) return false;
  if (pattern[0] == '[') {
    if (!naive_set(pattern, text[0], ignores_case)) return false;
    return naive_matches(pattern, text.substr(1), ignores_case);
  }
  const bool is_escape = pattern[0] == '\\' && pattern.size() >= 2;
  if (is_escape) pattern.remove_prefix(1);
  const bool is_same = ignores_case ? lower(pattern[0]) == lower(text[0]) : pattern[0] == text[0];
  if (!is_same && (is_escape || pattern[0] != '?')) return false;
  return naive_matches(pattern.substr(1), text.substr(1), ignores_case);
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

TEST(Glob, ManyStarsAreNoBomb) {
  const std::string text(kLongText, 'a');
  for (const auto count : {2, 1'000, 25'000, 100'000}) {
    EXPECT_FALSE(matches_in_time(repeated("a*", count) + 'b', text));
    EXPECT_FALSE(matches_in_time(repeated("*a", count) + "b*", text));
    EXPECT_TRUE(matches_in_time(repeated("a*", count) + 'b', text + 'b'));
    EXPECT_TRUE(matches_in_time(repeated("*a", count) + "b*", text + "bb"));
  }
  EXPECT_TRUE(matches_in_time(std::string(1'000'000, '*'), "a"));
}

TEST(Glob, LongRunsAreNoBomb) {
  const std::string text(kLongText, 'a');
  for (const auto count : {100, 10'000, 90'000}) {
    EXPECT_FALSE(matches_in_time("*" + std::string(count, 'a') + "b*", text));
    EXPECT_FALSE(matches_in_time("*b" + std::string(count, 'a') + "*", text));
    EXPECT_FALSE(matches_in_time("*" + repeated("?a", count / 2) + "b*", text));
    EXPECT_FALSE(matches_in_time("*a" + std::string(count, '?') + "b*", text));
    EXPECT_FALSE(matches_in_time("*" + repeated("[ac]", count) + "b*", text));
  }
}

TEST(Glob, LongSetsAreNoBomb) {
  const std::string text(kLongText, 'a');
  EXPECT_FALSE(matches_in_time("*[" + std::string(1'000'000, 'b') + "]*", text));
  EXPECT_FALSE(matches_in_time("*[" + repeated("b-\x7f", 300'000) + "]*", text));
  EXPECT_FALSE(matches_in_time(repeated("[ab]*", 100'000) + "c", text));
  EXPECT_FALSE(matches_in_time(repeated("[]", 500'000), text));
  EXPECT_FALSE(matches_in_time(repeated("[b-d]", 20'000), "maxmemory", LetterCase::kIgnored));
}

TEST(Glob, MillionQuestionMarksAreNoBomb) {
  const std::string marks(1'000'000, '?');
  EXPECT_TRUE(matches_in_time(marks, std::string(1'000'000, 'a')));
  EXPECT_FALSE(matches_in_time("*" + marks, std::string(999'999, 'a')));
  EXPECT_FALSE(matches_in_time("*" + marks + "b", std::string(2'000'000, 'a')));
  EXPECT_TRUE(matches_in_time("*" + marks + "b*", std::string(1'500'000, 'a') + "bb"));
  EXPECT_FALSE(matches_in_time(std::string(1'000'000, '['), "a"));
}

// Runs that a person would write are found wherever they are, however long the text is.
TEST(Glob, BoundSparesShortRunsAndShortTexts) {
  const std::string run = "a?" + std::string(Glob::kStepsPerByte - 3, 'a') + "b";
  ASSERT_EQ(run.size(), Glob::kStepsPerByte);
  EXPECT_TRUE(glob_matches("*" + run + "*", std::string(kLongText, 'a') + "b"));
  const std::string half = repeated("a?", 127) + "b";
  EXPECT_TRUE(glob_matches("*" + half + "*", std::string(511, 'a') + "b"));
}

}  // namespace
}  // namespace core
