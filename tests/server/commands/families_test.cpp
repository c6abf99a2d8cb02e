// SPDX-License-Identifier: MIT
#include "server/commands/families.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "server/dispatch/registry.h"

namespace server {
namespace {

TEST(FamiliesTest, NoneIsEmpty) {
  for (const auto family : command_families()) EXPECT_FALSE(family.empty());
}

TEST(FamiliesTest, EachStandsOnceInTheList) {
  std::set<const Command*> first_rows;
  for (const auto family : command_families()) {
    EXPECT_TRUE(first_rows.insert(family.data()).second) << family[0].name;
  }
}

TEST(FamiliesTest, NoNameIsInTwoFamilies) {
  std::set<std::string_view> names;
  for (const auto family : command_families()) {
    for (const Command& row : family) EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_GT(names.size(), 130U);
}

TEST(FamiliesTest, EveryRowIsSound) {
  for (const auto family : command_families()) {
    for (const Command& row : family) {
      EXPECT_EQ(check_row(row), "") << row.name;
      for (const Command& subcommand : row.subcommands) {
        EXPECT_EQ(check_row(subcommand), "") << row.name << '|' << subcommand.name;
      }
    }
  }
}

TEST(FamiliesTest, EveryRowTellsWhatItDoes) {
  for (const auto family : command_families()) {
    for (const Command& row : family) {
      EXPECT_FALSE(row.summary.empty()) << row.name;
      EXPECT_FALSE(row.group.empty()) << row.name;
      EXPECT_FALSE(row.since.empty()) << row.name;
      EXPECT_NE(row.summary.back(), '.') << row.name;
    }
  }
}

TEST(FamiliesTest, NamesAreInLowerCase) {
  for (const auto family : command_families()) {
    for (const Command& row : family) {
      for (const char letter : row.name) EXPECT_FALSE(letter >= 'A' && letter <= 'Z') << row.name;
    }
  }
}

TEST(FamiliesTest, TheRegistryTakesAllOfThem) {
  const auto registry = Registry::create(command_families(), {});
  ASSERT_TRUE(registry);
  for (const auto family : command_families()) {
    for (const Command& row : family) EXPECT_NE((*registry)->find(row.name), nullptr) << row.name;
  }
}

}  // namespace
}  // namespace server
