// SPDX-License-Identifier: MIT
#include "core/base64.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace core {
namespace {

TEST(Base64Test, MatchesTheVectorsOfTheRfc) {
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64Test, DecodesItsOwnOutput) {
  std::mt19937 random(1);
  for (size_t size = 0; size < 100; ++size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random());
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
  }
}

TEST(Base64Test, RejectsNonCanonicalText) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zh==", "Zm9=",
                                      "Zm9v\n", "Zm 9", "Zg==Zg==", "Zm-_", "=Zg="}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

}  // namespace
}  // namespace core
