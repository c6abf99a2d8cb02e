// SPDX-License-Identifier: MIT
#include "server/base/config/inert_rows.h"

#include <gtest/gtest.h>

namespace server::inert {
namespace {

constexpr BoolRow kBools[] = {{"a-flag", "its-old-name", "yes", kFree}};
constexpr NumberRow kIntegers[] = {{"a-count", "", "3", -1, 9, kFixed}};
constexpr NumberRow kSizes[] = {{"a-size", "", "1024", 0, kInt64Max, kFree}};
const EnumRow kEnums[] = {{"a-choice", "one", {"one", "two"}, kFree}};
constexpr TextRow kTexts[] = {{"some-words", "", "x y", kFree, kSeveralWords, kSecret}};

TEST(InertRowsTest, RowsBecomeOptionsWithoutEffect) {
  const auto options = options_of({kBools, kIntegers, kSizes, kEnums, kTexts});
  ASSERT_EQ(options.size(), 5U);
  for (const Option& option : options) EXPECT_TRUE(option.inert) << option.name;
  EXPECT_EQ(options[0].kind, OptionKind::kBool);
  EXPECT_EQ(options[0].aliases.at(0), "its-old-name");
  EXPECT_EQ(options[1].min, -1);
  EXPECT_EQ(options[1].max, 9);
  EXPECT_EQ(options[1].mutability, Mutability::kImmutable);
  EXPECT_EQ(options[2].kind, OptionKind::kMemory);
  EXPECT_EQ(options[3].choices.size(), 2U);
  EXPECT_EQ(options[4].kind, OptionKind::kList);
  EXPECT_TRUE(options[4].multi_argument);
  EXPECT_TRUE(options[4].sensitive);
}

TEST(InertRowsTest, AnEmptyAliasIsNone) {
  EXPECT_TRUE(options_of({{}, kIntegers, {}, {}, {}}).at(0).aliases.empty());
}

}  // namespace
}  // namespace server::inert
