// SPDX-License-Identifier: MIT
#include "persistence/rdb/seen_keys.h"

#include <gtest/gtest.h>

namespace persistence {
namespace {

TEST(SeenKeysTest, RejectsTheSameKeyOfADatabase) {
  SeenKeys keys;
  EXPECT_TRUE(keys.insert(0, "k"));
  EXPECT_TRUE(keys.insert(1, "k"));
  EXPECT_TRUE(keys.insert(0, ""));
  EXPECT_TRUE(keys.insert(0, "l"));
  const auto again = keys.insert(0, "k");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, duplicate_key(0).message);
  EXPECT_EQ(again.error().code, core::ErrorCode::kDamaged);
}

}  // namespace
}  // namespace persistence
