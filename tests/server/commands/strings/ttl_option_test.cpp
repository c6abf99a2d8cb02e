// SPDX-License-Identifier: MIT
#include "server/commands/strings/ttl_option.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace server {
namespace {

TEST(TtlOptionTest, OneKindMayBeRepeated) {
  const std::vector<std::string_view> words{"ex", "5", "EX", "7", "NX"};
  protocol::ArgumentCursor cursor(words);
  TtlOption option;
  EXPECT_FALSE(option.has_amount());
  EXPECT_TRUE(eat_ttl(cursor, option));
  EXPECT_TRUE(eat_ttl(cursor, option));
  EXPECT_FALSE(eat_ttl(cursor, option));
  EXPECT_TRUE(cursor.ok());
  EXPECT_EQ(option.kind, Ttl::kSeconds);
  EXPECT_EQ(option.amount, "7");
  EXPECT_TRUE(option.has_amount());
}

TEST(TtlOptionTest, TwoKindsContradictEachOther) {
  const std::vector<std::string_view> words{"PXAT", "5", "EXAT", "7"};
  protocol::ArgumentCursor cursor(words);
  TtlOption option;
  EXPECT_TRUE(eat_ttl(cursor, option));
  EXPECT_TRUE(eat_ttl(cursor, option));
  EXPECT_FALSE(cursor.ok());
  EXPECT_FALSE(choose_ttl(option, Ttl::kKeep));
  EXPECT_TRUE(choose_ttl(option, Ttl::kAtMilliseconds));
}

}  // namespace
}  // namespace server
