// SPDX-License-Identifier: MIT
#include "server/dispatch/syntax.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace server {
namespace {

// Returns the syntax tree in one line: name:kind, '=' before a literal word, '?' for optional, '+'
// for repeated.
std::string shown(const std::vector<Syntax>& parts) {
  std::string text;
  for (const Syntax& part : parts) {
    if (!text.empty()) text += ' ';
    if (!part.token.empty()) text += "=" + part.token + ",";
    text += part.name + ":" + std::string(kind_name(part.kind));
    if (!part.parts.empty()) text += "(" + shown(part.parts) + ")";
    if (part.optional) text += '?';
    if (part.multiple) text += '+';
  }
  return text;
}

std::string tree_of(std::string_view notation) {
  const auto parsed = parse_syntax(notation);
  return parsed ? shown(*parsed) : "!" + parsed.error().message;
}

TEST(SyntaxTest, NamesImplyTheKindOfAValue) {
  EXPECT_EQ(tree_of(""), "");
  EXPECT_EQ(tree_of("key value"), "key:key value:string");
  EXPECT_EQ(tree_of("pattern seconds unix-time-seconds ratio"),
            "pattern:pattern seconds:integer unix-time-seconds:unix-time ratio:double");
  EXPECT_EQ(tree_of("something"), "something:string");
  EXPECT_EQ(tree_of("db:integer key:string"), "db:integer key:string");
}

TEST(SyntaxTest, LiteralsTakeTheValueBehindThem) {
  EXPECT_EQ(tree_of("NX"), "=NX,nx:pure-token");
  EXPECT_EQ(tree_of("EX seconds"), "=EX,seconds:integer");
  EXPECT_EQ(tree_of("GET [NX]"), "=GET,get:pure-token =NX,nx:pure-token?");
  EXPECT_EQ(tree_of("A B c"), "=A,a:pure-token =B,c:string");
}

TEST(SyntaxTest, BracketsChoicesAndRepetitionsNest) {
  EXPECT_EQ(tree_of("key ..."), "key:key+");
  EXPECT_EQ(tree_of("[EX seconds | KEEPTTL]"),
            "seconds:oneof(=EX,seconds:integer =KEEPTTL,keepttl:pure-token)?");
  EXPECT_EQ(tree_of("(key value) ..."), "key:block(key:key value:string)+");
  EXPECT_EQ(tree_of("a | b c"), "a:oneof(a:string b:block(b:string c:string))");
  EXPECT_EQ(tree_of("[[a]]"), "a:string?");
}

TEST(SyntaxTest, InvalidNotationIsRejected) {
  EXPECT_EQ(tree_of("["), "!brackets do not match");
  EXPECT_EQ(tree_of("[a)"), "!brackets do not match");
  EXPECT_EQ(tree_of("a ]"), "!unexpected ']'");
  EXPECT_EQ(tree_of("a |"), "!empty choice");
  EXPECT_EQ(tree_of("..."), "!nothing to repeat");
  EXPECT_EQ(tree_of("a:b"), "!unknown type 'b'");
}

}  // namespace
}  // namespace server
