// SPDX-License-Identifier: MIT
#include "server/base/config/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace server {
namespace {

using ::testing::ElementsAre;

TEST(Words, AreSplitOnWhiteSpace) {
  EXPECT_THAT(*split_words("  port \t 6379\r"), ElementsAre("port", "6379"));
  EXPECT_TRUE(split_words("")->empty());
  EXPECT_TRUE(split_words(" \t ")->empty());
}

TEST(Words, DoubleQuotesKnowEscapes) {
  EXPECT_THAT(*split_words(R"(a "b c\n\r\t\b\a\x41\"\\\q" d)"),
              ElementsAre("a", "b c\n\r\t\b\aA\"\\q", "d"));
  EXPECT_THAT(*split_words(R"("\xzz\x4")"), ElementsAre("xzzx4"));
  EXPECT_THAT(*split_words(R"("")"), ElementsAre(""));
}

TEST(Words, SingleQuotesKnowOnlyTheirOwnEscape) {
  EXPECT_THAT(*split_words(R"('a\n\'b' '')"), ElementsAre("a\\n'b", ""));
}

TEST(Words, UnbalancedQuotesAreRefused) {
  for (const char* line : {"\"", "'", "\"a", "'a", "\"a\\", "\"a\\\"", "\"a\"b", "'a'b", "x \"",
                           "\"\\x", "\"\\x4", "'\\'"}) {
    EXPECT_FALSE(split_words(line)) << line;
  }
}

TEST(Words, ListInOneWordIsSplitAtEverySpace) {
  EXPECT_THAT(split_at_spaces("a b"), ElementsAre("a", "b"));
  EXPECT_THAT(split_at_spaces("a  b "), ElementsAre("a", "", "b", ""));
  EXPECT_TRUE(split_at_spaces("").empty());
}

TEST(Words, QuotedWordsAreReadBackUnchanged) {
  constexpr unsigned kSeed = 20240917;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (unsigned n = random() % 12; n > 0; --n) word += static_cast<char>(random() & 0xff);
    EXPECT_THAT(*split_words(quote_word(word)), ElementsAre(word));
    EXPECT_THAT(*split_words(quote_word_if_needed(word)), ElementsAre(word));
    EXPECT_EQ(quote_word(word).find_first_of("\r\n"), std::string::npos);
  }
}

TEST(Words, EveryTextIsSplitOrRefusedWithoutHarm) {
  constexpr unsigned kSeed = 77;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::string alphabet = "\"'\\x4 an\t";
  for (int i = 0; i < 20000; ++i) {
    std::string line;
    for (unsigned n = random() % 10; n > 0; --n) line += alphabet[random() % alphabet.size()];
    const auto words = split_words(line);
    if (!words) continue;
    std::string again;
    for (const auto& word : *words) again += quote_word(word) + ' ';
    EXPECT_EQ(split_words(again), words) << line;
  }
}

TEST(Words, LineEndsBecomeSpacesInMessages) {
  EXPECT_EQ(without_line_ends("a\r\nb"), "a  b");
}

}  // namespace
}  // namespace server
