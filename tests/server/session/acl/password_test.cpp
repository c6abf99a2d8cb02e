// SPDX-License-Identifier: MIT
#include "server/session/acl/password.h"

#include <gtest/gtest.h>

#include <string>

namespace server::acl {
namespace {

bool is_same_password(std::string_view a, std::string_view b) {
  return is_same_hash(hash_password(a), hash_password(b));
}

TEST(PasswordHashTest, OnlyTheSameBytesAreTheSame) {
  EXPECT_TRUE(is_same_password("secret", "secret"));
  EXPECT_TRUE(is_same_password("", ""));
  EXPECT_TRUE(is_same_password(std::string("a\0b", 3), std::string("a\0b", 3)));
  EXPECT_FALSE(is_same_password("secret", ""));
  EXPECT_FALSE(is_same_password("", "secret"));
  EXPECT_FALSE(is_same_password("secre", "secret"));
  EXPECT_FALSE(is_same_password("secrets", "secret"));
  EXPECT_FALSE(is_same_password("Secret", "secret"));
  EXPECT_FALSE(is_same_password(std::string("a\0b", 3), std::string("a\0c", 3)));
  EXPECT_FALSE(is_same_password("a", std::string("a\0", 2)));
}

TEST(PasswordHashTest, LongOnesAreComparedToTheEnd) {
  const std::string secret(10000, 'x');
  EXPECT_TRUE(is_same_password(secret, secret));
  EXPECT_FALSE(is_same_password(secret.substr(1) + "y", secret));
}

TEST(PasswordHashTest, HashesAreWrittenAsRedisDoes) {
  const std::string text = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
  EXPECT_EQ(hash_text(hash_password("foo")), text);
  EXPECT_EQ(parse_hash(text), hash_password("foo"));
  EXPECT_EQ(parse_hash(text.substr(1)), std::nullopt);
  EXPECT_EQ(parse_hash(text + "0"), std::nullopt);
  EXPECT_EQ(parse_hash("2C" + text.substr(2)), std::nullopt);
  EXPECT_EQ(parse_hash("zz" + text.substr(2)), std::nullopt);
}

TEST(PasswordHashTest, RandomOnesHaveTheDigitsThatTheBitsTake) {
  for (const size_t bits : {size_t{1}, size_t{4}, size_t{5}, size_t{256}, kPasswordBitsMax}) {
    const auto password = random_password(bits);
    ASSERT_TRUE(password);
    EXPECT_EQ(password->size(), (bits + 3) / 4);
    EXPECT_EQ(password->find_first_not_of("0123456789abcdef"), std::string::npos);
  }
  EXPECT_NE(random_password(256), random_password(256));
}

}  // namespace
}  // namespace server::acl
