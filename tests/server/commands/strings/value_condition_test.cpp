// SPDX-License-Identifier: MIT
#include "server/commands/strings/value_condition.h"

#include <array>
#include <string>
#include <string_view>

#include "tests/support/key_test.h"

namespace server {
namespace {

using Kind = ValueCondition::Kind;

class ValueConditionTest : public KeyTest {
 protected:
  std::string holds(Kind kind, std::string_view operand) {
    const auto answer = ValueCondition{kind, operand}.holds_for(*entry_of("a"));
    if (!answer) return answer.error().message;
    return *answer ? "yes" : "no";
  }
};

TEST_F(ValueConditionTest, WordsAreKnownInAnyCase) {
  EXPECT_EQ(condition_kind("IFEQ"), Kind::kEqual);
  EXPECT_EQ(condition_kind("ifne"), Kind::kNotEqual);
  EXPECT_EQ(condition_kind("IfDeq"), Kind::kDigestEqual);
  EXPECT_EQ(condition_kind("IFDNE"), Kind::kDigestNotEqual);
  for (const char* word : {"", "IF", "EQ", "IFEQX"}) EXPECT_EQ(condition_kind(word), Kind::kNone);
}

TEST_F(ValueConditionTest, ComparesTheTextHoweverItIsKept) {
  const std::array<std::string, 4> values{"12345", "", "hello", std::string("\0\xff", 2)};
  for (const std::string& value : values) {
    put("a", value);
    EXPECT_EQ(holds(Kind::kEqual, value), "yes");
    EXPECT_EQ(holds(Kind::kEqual, value + "x"), "no");
    EXPECT_EQ(holds(Kind::kNotEqual, value), "no");
    EXPECT_EQ(holds(Kind::kNotEqual, value + "x"), "yes");
  }
}

TEST_F(ValueConditionTest, ComparesDigestsInAnyCase) {
  put("a", "");
  EXPECT_EQ(holds(Kind::kDigestEqual, "2d06800538d394c2"), "yes");
  EXPECT_EQ(holds(Kind::kDigestEqual, "2D06800538D394C2"), "yes");
  EXPECT_EQ(holds(Kind::kDigestNotEqual, "2d06800538d394c2"), "no");
  EXPECT_EQ(holds(Kind::kDigestNotEqual, "2d06800538d394c3"), "yes");
  EXPECT_EQ(holds(Kind::kDigestEqual, "2d06800538d394c"), kNoDigest);
  EXPECT_EQ(holds(Kind::kDigestEqual, "zzzzzzzzzzzzzzzz"), "no");
  EXPECT_EQ(holds(Kind::kDigestNotEqual, "zzzzzzzzzzzzzzzz"), "yes");
}

}  // namespace
}  // namespace server
