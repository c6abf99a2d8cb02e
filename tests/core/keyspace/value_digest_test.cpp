// SPDX-License-Identifier: MIT
#include "core/keyspace/value_digest.h"

#include <gtest/gtest.h>

namespace core::keyspace {
namespace {

TEST(ValueDigestTest, EqualsTheDigestOfRedis) {
  // The expected digest comes from the tests of Redis 8.4.
  EXPECT_EQ(
      digest_text(value_digest(
          "v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwl"
          "j7626sd")),
      "00006c38adf31777");
  // XXH3's own test vector for the empty input.
  EXPECT_EQ(digest_text(value_digest("")), "2d06800538d394c2");
}

TEST(ValueDigestTest, OnlySixteenDigitsAreADigest) {
  EXPECT_EQ(parse_digest("00006c38adf31777"), 0x6c38adf31777U);
  EXPECT_EQ(parse_digest("00006C38ADF31777"), 0x6c38adf31777U);
  EXPECT_EQ(parse_digest("ffffffffffffffff"), ~uint64_t{0});
  for (const char* text : {"", "6c38adf31777", "000006c38adf31777", "00006c38adf3177g",
                           "-0006c38adf31777", "0x006c38adf31777", " 0006c38adf31777"}) {
    EXPECT_EQ(parse_digest(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace core::keyspace
