// SPDX-License-Identifier: MIT
#include "server/base/config/option_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace server {
namespace {

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

TEST(OptionTableTest, EveryIdHasItsRow) {
  ASSERT_GE(option_table().size(), kOptionIdCount);
  for (size_t i = 0; i < kOptionIdCount; ++i) {
    EXPECT_EQ(&option_row(static_cast<OptionId>(i)), &option_table()[i]);
    EXPECT_FALSE(option_table()[i].name.empty());
  }
  EXPECT_EQ(option_row(OptionId::kPort).name, "port");
  EXPECT_EQ(option_row(OptionId::kUnixSocket).name, "unixsocket");
}

TEST(OptionTableTest, NamesAndAliasesAreUniqueAndLowerCase) {
  std::set<std::string> names;
  const auto add = [&](std::string_view name) {
    EXPECT_TRUE(names.emplace(name).second) << name;
    EXPECT_TRUE(std::ranges::none_of(name, [](unsigned char c) {
      return std::isupper(c) || c == ' ';
    })) << name;
  };
  for (const Option& option : option_table()) {
    add(option.name);
    for (const std::string_view alias : option.aliases) add(alias);
  }
}

TEST(OptionTableTest, IsFoundByEachNameInAnyCase) {
  for (size_t i = 0; i < option_table().size(); ++i) {
    const Option& option = option_table()[i];
    EXPECT_EQ(find_option(option.name), i) << option.name;
    EXPECT_EQ(find_option(upper_case(option.name)), i) << option.name;
    for (const std::string_view alias : option.aliases) EXPECT_EQ(find_option(alias), i) << alias;
  }
}

TEST(OptionTableTest, FindsNoInvalidNames) {
  for (const char* name : {"", "por", "ports", "port ", "no-such-option"}) {
    EXPECT_FALSE(find_option(name)) << name;
  }
}

TEST(OptionTableTest, AnEnumsDefaultIsOneOfItsChoices) {
  for (const Option& option : option_table()) {
    if (option.kind != OptionKind::kEnum) continue;
    EXPECT_TRUE(std::ranges::find(option.choices, option.default_text) != option.choices.end())
        << option.name;
  }
}

TEST(OptionTableTest, ARangeIsOne) {
  for (const Option& option : option_table()) EXPECT_LE(option.min, option.max) << option.name;
}

TEST(OptionTableTest, PasswordsAreSecrets) {
  for (const char* name : {"requirepass", "masterauth", "tls-key-file-pass"}) {
    const auto index = find_option(name);
    ASSERT_TRUE(index) << name;
    EXPECT_TRUE(option_table()[*index].sensitive) << name;
  }
}

}  // namespace
}  // namespace server
