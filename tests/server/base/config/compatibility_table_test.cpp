// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "server/base/config/config.h"
#include "server/base/config/option_table.h"

namespace server {
namespace {

const Option* find(std::string_view name) {
  static const auto options = compatibility_options();
  const auto found = std::ranges::find(options, name, &Option::name);
  return found == options.end() ? nullptr : &*found;
}

TEST(CompatibilityTableTest, AllRowsAreWithoutEffect) {
  const auto options = compatibility_options();
  EXPECT_FALSE(options.empty());
  for (const Option& option : options) EXPECT_TRUE(option.inert) << option.name;
}

TEST(CompatibilityTableTest, RowsStandBehindThoseWithAnId) {
  for (const Option& option : compatibility_options()) {
    const auto index = find_option(option.name);
    ASSERT_TRUE(index) << option.name;
    EXPECT_GE(*index, kOptionIdCount) << option.name;
  }
}

TEST(CompatibilityTableTest, DefaultsAreThoseOfRedis) {
  for (const auto& [name, text] : std::array<std::pair<const char*, const char*>, 4>{
           {{"activedefrag", "no"},
            {"activerehashing", "yes"},
            {"always-show-logo", "no"},
            {"cluster-require-full-coverage", "yes"}}}) {
    const Option* const option = find(name);
    ASSERT_NE(option, nullptr) << name;
    EXPECT_EQ(option->default_text, text) << name;
  }
}

TEST(CompatibilityTableTest, OldNamesAreAliases) {
  const Option* const option = find("cluster-replica-no-failover");
  ASSERT_NE(option, nullptr);
  EXPECT_EQ(option->aliases.at(0), "cluster-slave-no-failover");
}

TEST(CompatibilityTableTest, ValuesAreCheckedAndKept) {
  Config config;
  const NamedValue good{"activedefrag", "yes"};
  EXPECT_TRUE(config.set({&good, 1}));
  const NamedValue bad{"activedefrag", "perhaps"};
  EXPECT_FALSE(config.set({&bad, 1}));
}

TEST(CompatibilityTableTest, ImmutableOptionsOfRedisAreImmutable) {
  Config config;
  const NamedValue fixed{"always-show-logo", "yes"};
  EXPECT_FALSE(config.set({&fixed, 1}));
}

}  // namespace
}  // namespace server
