// SPDX-License-Identifier: MIT
#include "protocol/inline_splitter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

std::optional<std::vector<std::string>> split(std::string_view line) {
  protocol::InlineSplitter splitter;
  if (!splitter.split(line)) return std::nullopt;
  return std::vector<std::string>(splitter.arguments().begin(), splitter.arguments().end());
}

TEST(InlineSplitterTest, WhiteSpaceSeparatesWords) {
  EXPECT_THAT(split(""), Optional(IsEmpty()));
  EXPECT_THAT(split(" \t\v\f\r\n "), Optional(IsEmpty()));
  EXPECT_THAT(split("  SET\tkey  value "), Optional(ElementsAre("SET", "key", "value")));
  EXPECT_THAT(split("PING a\rb"), Optional(ElementsAre("PING", "a", "b")));
}

TEST(InlineSplitterTest, VerticalTabAndFormFeedDoNotEndAWord) {
  EXPECT_THAT(split("PING\vx"), Optional(ElementsAre("PING\vx")));
  EXPECT_THAT(split("PING a\vb \vc"), Optional(ElementsAre("PING", "a\vb", "c")));
}

TEST(InlineSplitterTest, DoubleQuotesUnescape) {
  EXPECT_THAT(split(R"(PING "\x41\n\r\t\b\a\q\\\"\xZZ")"),
              Optional(ElementsAre("PING", "A\n\r\t\b\aq\\\"xZZ")));
  EXPECT_THAT(split(R"("\x00\xfF")"), Optional(ElementsAre(std::string("\0\xff", 2))));
  EXPECT_THAT(split(R"("\x4")"), Optional(ElementsAre("x4")));
}

TEST(InlineSplitterTest, SingleQuotesEscapeOnlyThemselves) {
  EXPECT_THAT(split(R"('a\'b\n\\ ')"), Optional(ElementsAre(R"(a'b\n\\ )")));
}

TEST(InlineSplitterTest, QuotesMayOpenInsideAWordAndBeEmpty) {
  EXPECT_THAT(split(R"(a"b c" '' "")"), Optional(ElementsAre("ab c", "", "")));
  EXPECT_THAT(split("'a'\v'b'"), Optional(ElementsAre("a", "b")));
}

TEST(InlineSplitterTest, UnbalancedQuotesAreRejected) {
  for (const char* line : {"\"", "'", "PING \"a", "PING 'a", "\"a\"b", "''x", "\"a\\\"", "'a\\'",
                           "\"a\\", "\"\"\"\"", "a\"b\"'c'"}) {
    EXPECT_EQ(split(line), std::nullopt) << line;
  }
}

TEST(InlineSplitterTest, EarlierWordsSurviveLaterOnes) {
  std::string line;
  for (int i = 0; i < 500; ++i) line += fmt::format("\"w{}\" ", i);
  const auto words = split(line);
  ASSERT_TRUE(words.has_value());
  for (int i = 0; i < 500; ++i) EXPECT_EQ((*words)[i], fmt::format("w{}", i));
}

TEST(InlineSplitterTest, SplitterIsReusable) {
  protocol::InlineSplitter splitter;
  EXPECT_FALSE(splitter.split("'a"));
  splitter.release_if_large();
  EXPECT_TRUE(splitter.split("'b' c"));
  EXPECT_THAT(splitter.arguments(), ElementsAre("b", "c"));
}

}  // namespace
