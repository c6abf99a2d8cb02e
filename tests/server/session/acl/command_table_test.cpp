// SPDX-License-Identifier: MIT
#include "server/session/acl/command_table.h"

#include <gtest/gtest.h>

#include "tests/server/session/acl/acl_fixture.h"

namespace server::acl {
namespace {

TEST(CommandTableTest, NamesAreFoundInAnyCase) {
  const CommandTable table = test_table();
  EXPECT_EQ(table.find("get"), kGet);
  EXPECT_EQ(table.find("Config|GET"), kConfigGet);
  EXPECT_EQ(table.find("config|"), std::nullopt);
  EXPECT_EQ(table.find(""), std::nullopt);
  EXPECT_EQ(table.at(kConfigSet).parent, "config");
}

TEST(CommandTableTest, CategoriesHaveBits) {
  const CommandTable table = test_table();
  EXPECT_EQ(table.category_bit("READ"), kTestRead);
  EXPECT_EQ(table.category_bit("admin"), kTestAdmin);
  EXPECT_EQ(table.category_bit("@read"), std::nullopt);
  EXPECT_EQ(table.category_names().size(), 4U);
}

}  // namespace
}  // namespace server::acl
