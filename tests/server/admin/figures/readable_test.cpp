// SPDX-License-Identifier: MIT
#include "server/admin/figures/readable.h"

#include <gtest/gtest.h>

namespace server::admin {
namespace {

TEST(ReadableTest, TextStaysAsItIs) {
  for (const char* text :
       {"", "filter:1", "gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC", "\xF0\x9F\x8C\xB8"}) {
    EXPECT_EQ(readable(text), text);
  }
}

TEST(ReadableTest, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(readable(std::string("a\0b\n\x7F\x1B", 6)), "a\\x00b\\x0a\\x7f\\x1b");
  EXPECT_EQ(readable("\xC2\x85"), "\\xc2\\x85");
}

// U+202E shows "txt.exe" for "exe.txt"; U+2028 ends a line.
TEST(ReadableTest, CharactersThatChangeTheLayoutAreSpelledOut) {
  EXPECT_EQ(readable("a\xE2\x80\xAE"
                     "b"),
            "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(readable("\xE2\x80\xA8"), "\\xe2\\x80\\xa8");
  EXPECT_EQ(readable("\xE2\x81\xA6"), "\\xe2\\x81\\xa6");
  for (const char* text : {"\xE2\x80\x8D", "\xE2\x80\xA7", "\xE2\x80\xAF", "\xD7\x90"}) {
    EXPECT_EQ(readable(text), text);
  }
}

TEST(ReadableTest, EscapesTextThatLooksLikeAnEscape) {
  EXPECT_EQ(readable("a\\x0ab"), "a\\x5cx0ab");
  EXPECT_EQ(readable("\\\\xff"), "\\\\x5cxff");
  for (const char* text : {"\\", "a\\", "\\x", "\\x0", "\\xg0", "\\x0A", "\\n", "C:\\xylophone"}) {
    EXPECT_EQ(readable(text), text);
  }
}

TEST(ReadableTest, BytesThatAreNoUtf8AreSpelledOut) {
  EXPECT_EQ(readable("\xFF"), "\\xff");
  EXPECT_EQ(readable("\xC3"), "\\xc3");           // a truncated UTF-8 sequence
  EXPECT_EQ(readable("\xC3(x"), "\\xc3(x");       // a sequence without its continuation byte
  EXPECT_EQ(readable("\xC0\xAF"), "\\xc0\\xaf");  // an overlong UTF-8 sequence
  EXPECT_EQ(readable("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // the UTF-8 form of a surrogate
  EXPECT_EQ(readable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

}  // namespace
}  // namespace server::admin
