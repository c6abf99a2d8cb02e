// SPDX-License-Identifier: MIT
#include "server/session/acl/user.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/session/acl/command_rules.h"
#include "tests/server/session/acl/acl_fixture.h"

namespace server::acl {
namespace {

constexpr std::string_view kHashOfA =
    "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

class UserTest : public ::testing::Test {
 protected:
  // Applies the rules. Returns the first error, or "".
  std::string apply(const std::vector<std::string_view>& words) {
    const auto fault = user_.apply_all(words);
    if (!fault) return "";
    return fault->is_unclosed ? "unclosed " + fault->rule : fault->rule + ": " + fault->reason;
  }

  const CommandTable table_ = test_table();
  User user_{"alice", table_, ChannelDefault::kResetChannels};
};

TEST_F(UserTest, ANewOneMayNothing) {
  EXPECT_FALSE(user_.is_on());
  EXPECT_FALSE(user_.is_unrestricted());
  EXPECT_EQ(user_.describe(), "off resetchannels -@all");
}

TEST_F(UserTest, RulesAreDescribedInOneOrder) {
  ASSERT_EQ(apply({"+get", "&c", "~k", ">a", "ON", "(+set ~x)", "skip-sanitize-payload"}), "");
  EXPECT_EQ(user_.describe(), "on skip-sanitize-payload #" + std::string(kHashOfA) +
                                  " ~k resetchannels &c -@all +get (~x resetchannels -@all +set)");
  ASSERT_EQ(apply({"reset"}), "");
  EXPECT_EQ(user_.describe(), "off sanitize-payload resetchannels -@all");
}

TEST_F(UserTest, PasswordsAreSets) {
  ASSERT_EQ(apply({">a", ">b", ">a"}), "");
  EXPECT_EQ(user_.passwords().size(), 2U);
  EXPECT_TRUE(user_.has_password(hash_password("a")));
  EXPECT_FALSE(user_.has_password(hash_password("c")));
  ASSERT_EQ(apply({"<b"}), "");
  EXPECT_EQ(apply({"<b"}),
            "<b: The password you are trying to remove from the user does not exist");
  ASSERT_EQ(apply({"!" + std::string(kHashOfA)}), "");
  EXPECT_TRUE(user_.passwords().empty());
  EXPECT_TRUE(apply({"#zz"}).starts_with("#zz: The password hash must be exactly 64"));
  ASSERT_EQ(apply({"nopass"}), "");
  EXPECT_TRUE(user_.has_no_password());
  ASSERT_EQ(apply({">a"}), "");
  EXPECT_FALSE(user_.has_no_password());
  ASSERT_EQ(apply({"nopass"}), "");
  EXPECT_TRUE(user_.passwords().empty());
}

TEST_F(UserTest, SelectorsMayCrossWords) {
  ASSERT_EQ(apply({"(+get", "~a)", "(", "+set", ")", "()"}), "");
  EXPECT_EQ(user_.selectors().size(), 4U);
  EXPECT_TRUE(user_.selectors()[1].allows_key("a", kReadWrite));
  EXPECT_TRUE(user_.selectors()[2].commands().allows(kSet, nullptr));
  EXPECT_FALSE(user_.selectors()[2].allows_key("a", kNoAccess));
  ASSERT_EQ(apply({"clearselectors"}), "");
  EXPECT_EQ(user_.selectors().size(), 1U);
}

TEST_F(UserTest, WrongSelectorsAreRejected) {
  EXPECT_EQ(apply({"("}), "unclosed (");
  EXPECT_EQ(apply({"(+get", "~x"}), "unclosed (+get");
  EXPECT_EQ(apply({"((+get))"}), "((+get)): Syntax error");
  EXPECT_EQ(apply({"(on)"}), "(on): Syntax error");
  EXPECT_EQ(apply({"(+foo)"}), "(+foo): " + std::string(kUnknownCommandRule));
  EXPECT_EQ(apply({"foo)"}), "foo): Syntax error");
  // ACL LIST writes a selector in parentheses. A pattern with a `)` would end the selector too
  // early, so such a pattern is rejected.
  EXPECT_EQ(apply({"(", "+get", "~x))"}), "( +get ~x)): Syntax error");
}

TEST_F(UserTest, ASelectorThatMayDoEverythingMakesTheUserSo) {
  ASSERT_EQ(apply({"~a", "(~* &* +@all)"}), "");
  EXPECT_TRUE(user_.is_unrestricted());
  EXPECT_TRUE(user_.allows_channel("x", true));
  ASSERT_EQ(apply({"clearselectors"}), "");
  EXPECT_FALSE(user_.is_unrestricted());
  EXPECT_FALSE(user_.allows_channel("x", true));
}

TEST_F(UserTest, PasswordsAndSelectorsAreBounded) {
  for (int i = 0; i < 1024; ++i) ASSERT_TRUE(user_.apply(">" + std::to_string(i)));
  EXPECT_FALSE(user_.apply(">one more"));
  EXPECT_TRUE(user_.apply(">0"));
  for (int i = 0; i < 1023; ++i) ASSERT_TRUE(user_.apply("()"));
  EXPECT_FALSE(user_.apply("()"));
}

TEST(UserNameTest, NamesFitIntoALine) {
  EXPECT_TRUE(is_user_name("alice"));
  EXPECT_TRUE(is_user_name("a\"b"));
  EXPECT_FALSE(is_user_name(""));
  EXPECT_FALSE(is_user_name("a b"));
  EXPECT_FALSE(is_user_name("a\nb"));
  EXPECT_FALSE(is_user_name(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace server::acl
