// SPDX-License-Identifier: MIT
#include "core/printable.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace core {
namespace {

using namespace std::string_view_literals;

TEST(PrintableTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("a\nb\rc\td\be\a"), "a\\nb\\rc\\td\\be\\a");
  EXPECT_EQ(printable("\0\x1b\x7f"sv), "\\x00\\x1b\\x7f");
}

TEST(PrintableTest, OtherBytesAreUnchanged) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("plain \\n text"), "plain \\n text");
  EXPECT_EQ(printable("h\xc3\xb6he \xff"), "h\xc3\xb6he \xff");
}

TEST(PrintableTest, NoResultHoldsAControlCharacter) {
  for (int byte = 0; byte < 256; ++byte) {
    for (const char c : printable(std::string(1, static_cast<char>(byte)))) {
      const auto value = static_cast<unsigned char>(c);
      EXPECT_TRUE(value >= 0x20 && value != 0x7f) << byte;
    }
  }
}

TEST(PrintableTest, CharactersAreAppended) {
  std::string out = "a";
  append_printable(out, '\n');
  append_printable(out, 'b');
  EXPECT_EQ(out, "a\\nb");
}

}  // namespace
}  // namespace core
