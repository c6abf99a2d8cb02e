// SPDX-License-Identifier: MIT
#include "server/base/config/option_rows.h"

#include <gtest/gtest.h>

namespace server::rows {
namespace {

TEST(OptionRowsTest, EachKindHasItsFunction) {
  const auto options = without_effect(
      {{flag("a-flag", "yes", {.aliases = {"its-old-name"}}),
        integer("a-count", "3", -1, 9, {.mutability = kImmutable}), bytes("a-size", "1024")},
       {choice("a-choice", "one", {"one", "two"}),
        list("some-words", {.default_text = "x y", .sensitive = true}), text("a-text")}});
  ASSERT_EQ(options.size(), 6U);
  for (const Option& option : options) EXPECT_TRUE(option.inert) << option.name;
  EXPECT_EQ(options[0].kind, OptionKind::kBool);
  EXPECT_EQ(options[0].default_text, "yes");
  EXPECT_EQ(options[0].aliases.at(0), "its-old-name");
  EXPECT_EQ(options[1].kind, OptionKind::kInteger);
  EXPECT_EQ(options[1].min, -1);
  EXPECT_EQ(options[1].max, 9);
  EXPECT_EQ(options[1].mutability, Mutability::kImmutable);
  EXPECT_EQ(options[2].kind, OptionKind::kMemory);
  EXPECT_EQ(options[3].kind, OptionKind::kEnum);
  EXPECT_EQ(options[3].choices.size(), 2U);
  EXPECT_EQ(options[4].kind, OptionKind::kList);
  EXPECT_EQ(options[4].default_text, "x y");
  EXPECT_TRUE(options[4].multi_argument);
  EXPECT_TRUE(options[4].sensitive);
  EXPECT_EQ(options[5].kind, OptionKind::kString);
}

TEST(OptionRowsTest, OmittedFieldsHaveTheirDefaults) {
  const Option option = integer("a-count", "3", 0, 9);
  EXPECT_TRUE(option.aliases.empty());
  EXPECT_EQ(option.mutability, Mutability::kMutable);
  EXPECT_FALSE(option.inert);
}

}  // namespace
}  // namespace server::rows
