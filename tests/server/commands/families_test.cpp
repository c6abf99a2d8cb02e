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
  std::set<std::string_view> first_names;
  for (const auto family : command_families()) {
    EXPECT_TRUE(first_names.insert(family[0].name).second) << family[0].name;
  }
}

TEST(FamiliesTest, RowsHaveTheFieldsOfTheirFamily) {
  const auto registry = Registry::create(command_families(), {});
  ASSERT_TRUE(registry);
  const Command& id = *(*registry)->find_by_full_name("client|id")->row;
  EXPECT_EQ(id.flags, kNoScript | kLoading | kStale);
  EXPECT_EQ(id.categories, kConnection);
  EXPECT_EQ(id.group, "connection");
  EXPECT_EQ(id.complexity, "O(1)");
  const Command& kill = *(*registry)->find_by_full_name("client|kill")->row;
  EXPECT_EQ(kill.flags, kNoScript | kLoading | kStale | kAdmin);
  EXPECT_NE(kill.complexity, "O(1)");
  const Command& encoding = *(*registry)->find_by_full_name("object|encoding")->row;
  EXPECT_EQ(encoding.keys[0].first, 2);
  EXPECT_EQ(encoding.since, "2.2.3");
}

TEST(FamiliesTest, ContainersHaveNoFlagsOfTheirFamily) {
  const auto registry = Registry::create(command_families(), {});
  ASSERT_TRUE(registry);
  const Command& client = *(*registry)->find("client")->row;
  EXPECT_EQ(client.arity, -2);
  EXPECT_EQ(client.flags, 0U);
  EXPECT_EQ(client.categories, 0U);
  EXPECT_EQ(client.group, "connection");
  EXPECT_EQ(client.complexity, "Depends on subcommand");
  const Command& object = *(*registry)->find("object")->row;
  EXPECT_EQ(object.keys[0].first, 0);
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
