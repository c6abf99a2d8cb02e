// SPDX-License-Identifier: MIT
#include "server/process/password.h"

#include <gtest/gtest.h>

#include <string>

namespace server {
namespace {

TEST(PasswordCompareTest, OnlyTheSameBytesAreTheSame) {
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

TEST(PasswordCompareTest, LongOnesAreComparedToTheEnd) {
  const std::string secret(10000, 'x');
  EXPECT_TRUE(is_same_password(secret, secret));
  EXPECT_FALSE(is_same_password(secret.substr(1) + "y", secret));
}

}  // namespace
}  // namespace server
