// SPDX-License-Identifier: MIT
#include "protocol/arguments.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string_view>
#include <vector>

#include "protocol/error_texts.h"

namespace {

using protocol::ArgumentCursor;
using protocol::equals_ignore_case;
using protocol::kNotAFloat;
using protocol::kNotAnInteger;
using protocol::kSyntaxError;
using Arguments = std::vector<std::string_view>;

TEST(ArgumentsTest, KeywordsMatchInAnyCase) {
  EXPECT_TRUE(equals_ignore_case("", ""));
  EXPECT_TRUE(equals_ignore_case("nOcReAtE", "NOCREATE"));
  EXPECT_FALSE(equals_ignore_case("NX", "NXX"));
  EXPECT_FALSE(equals_ignore_case("@", "`"));
  EXPECT_FALSE(equals_ignore_case("[", "{"));
  EXPECT_FALSE(equals_ignore_case("\xc4", "\xe4"));
}

TEST(ArgumentsTest, OptionsReadLikeTheGrammar) {
  const Arguments arguments{"key", "ex", "10", "Nx"};
  ArgumentCursor cursor(arguments);
  EXPECT_EQ(cursor.remaining(), 4u);
  EXPECT_EQ(cursor.next(), "key");
  EXPECT_EQ(cursor.peek(), "ex");
  EXPECT_FALSE(cursor.eat_keyword("NX"));
  EXPECT_TRUE(cursor.eat_keyword("EX"));
  EXPECT_EQ(cursor.take_int64(), 10);
  EXPECT_FALSE(cursor.done());
  EXPECT_TRUE(cursor.eat_keyword("NX"));
  EXPECT_TRUE(cursor.done());
  cursor.expect_end();
  EXPECT_TRUE(cursor.ok());
  EXPECT_EQ(cursor.error(), "");
}

TEST(ArgumentsTest, FirstErrorIsKeptAndEndsLoops) {
  const Arguments arguments{"x", "y", "z"};
  ArgumentCursor cursor(arguments);
  EXPECT_EQ(cursor.take_int64("ERR bad size"), 0);
  EXPECT_TRUE(cursor.done());
  EXPECT_FALSE(cursor.eat_keyword("y"));
  EXPECT_EQ(cursor.next(), "");
  EXPECT_EQ(cursor.peek(), "");
  cursor.fail("ERR later");
  EXPECT_EQ(cursor.take_double(), 0);
  EXPECT_EQ(cursor.error(), "ERR bad size");
}

TEST(ArgumentsTest, MissingArgumentIsASyntaxError) {
  ArgumentCursor cursor({});
  EXPECT_EQ(cursor.take_int64(), 0);
  EXPECT_EQ(cursor.error(), kSyntaxError);
}

TEST(ArgumentsTest, LeftoverIsASyntaxError) {
  const Arguments arguments{"x"};
  ArgumentCursor cursor(arguments);
  cursor.expect_end();
  EXPECT_EQ(cursor.error(), kSyntaxError);
}

TEST(ArgumentsTest, RangeIsChecked) {
  const Arguments arguments{"1", "5", "6"};
  ArgumentCursor cursor(arguments);
  EXPECT_EQ(cursor.take_int64_between(1, 5), 1);
  EXPECT_EQ(cursor.take_int64_between(1, 5), 5);
  EXPECT_EQ(cursor.take_int64_between(1, 5), 0);
  EXPECT_EQ(cursor.error(), kNotAnInteger);
}

TEST(ArgumentsTest, InvalidFloatIsAnError) {
  const Arguments arguments{"1.5", "nan"};
  ArgumentCursor cursor(arguments);
  EXPECT_EQ(cursor.take_double(), 1.5);
  EXPECT_EQ(cursor.take_double(), 0);
  EXPECT_EQ(cursor.error(), kNotAFloat);
}

}  // namespace
