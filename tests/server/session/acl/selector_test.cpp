// SPDX-License-Identifier: MIT
#include "server/session/acl/selector.h"

#include <gtest/gtest.h>

#include <string>

#include "server/session/acl/rule_error.h"
#include "tests/server/session/acl/acl_fixture.h"

namespace server::acl {
namespace {

class SelectorTest : public ::testing::Test {
 protected:
  std::string apply(std::string_view rule) {
    const auto applied = selector_.apply(rule);
    return applied ? "" : applied.error().message;
  }

  const CommandTable table_ = test_table();
  Selector selector_{table_, ChannelDefault::kResetChannels};
};

TEST_F(SelectorTest, KeysNeedAPatternThatGrantsTheAccess) {
  EXPECT_FALSE(selector_.allows_key("a", kNoAccess));
  ASSERT_EQ(apply("%R~read:*"), "");
  ASSERT_EQ(apply("%w~write:*"), "");
  ASSERT_EQ(apply("~both:*"), "");
  EXPECT_TRUE(selector_.allows_key("read:1", kRead));
  EXPECT_FALSE(selector_.allows_key("read:1", kWriteAccess));
  EXPECT_FALSE(selector_.allows_key("write:1", kReadWrite));
  EXPECT_TRUE(selector_.allows_key("write:1", kWriteAccess));
  EXPECT_TRUE(selector_.allows_key("both:1", kReadWrite));
  EXPECT_TRUE(selector_.allows_key("write:1", kNoAccess));
  EXPECT_FALSE(selector_.allows_key("other", kNoAccess));
  EXPECT_EQ(selector_.key_text(), "%R~read:* %W~write:* ~both:*");
}

TEST_F(SelectorTest, TwoPatternsDoNotAddUp) {
  ASSERT_EQ(apply("%R~a*"), "");
  ASSERT_EQ(apply("%W~*b"), "");
  EXPECT_FALSE(selector_.allows_key("ab", kReadWrite));
  // The selector already has the pattern "a*" for reads. A rule that adds "a*" for writes changes
  // this pattern to one for reads and writes.
  ASSERT_EQ(apply("%W~a*"), "");
  EXPECT_TRUE(selector_.allows_key("ab", kReadWrite));
  EXPECT_EQ(selector_.key_text(), "~a* %W~*b");
}

TEST_F(SelectorTest, AllKeysTakesNoFurtherPattern) {
  ASSERT_EQ(apply("~a"), "");
  ASSERT_EQ(apply("~*"), "");
  EXPECT_TRUE(selector_.allows_key("", kReadWrite));
  EXPECT_EQ(selector_.key_text(), "~*");
  EXPECT_TRUE(apply("~b").starts_with("Adding a pattern after the * pattern"));
  ASSERT_EQ(apply("resetkeys"), "");
  EXPECT_FALSE(selector_.allows_key("a", kNoAccess));
  EXPECT_EQ(apply("~b"), "");
}

TEST_F(SelectorTest, APatternOfChannelsIsGrantedLiterally) {
  ASSERT_EQ(apply("&news.*"), "");
  EXPECT_TRUE(selector_.allows_channel("news.art", false));
  EXPECT_FALSE(selector_.allows_channel("news.art", true));
  EXPECT_TRUE(selector_.allows_channel("news.*", true));
  EXPECT_FALSE(selector_.allows_channel("news.a*", true));
  EXPECT_EQ(selector_.channel_text(), "&news.*");
  EXPECT_EQ(selector_.describe(), "resetchannels &news.* -@all");
  ASSERT_EQ(apply("allchannels"), "");
  EXPECT_TRUE(selector_.allows_channel("anything", true));
  EXPECT_TRUE(apply("&b").starts_with("Adding a pattern after the * pattern"));
  EXPECT_EQ(selector_.describe(), "&* -@all");
}

TEST_F(SelectorTest, WrongRulesAreSyntaxErrors) {
  for (const char* const rule : {"%~a", "%", "%R", "%RW", "%RR~a", "%X~a", "%~", "~a b", "&a b",
                                 "~a\tb", "bogus", "on", "(+get)", ">p", "nopass"}) {
    EXPECT_EQ(apply(rule), kRuleSyntax) << rule;
  }
  EXPECT_EQ(selector_.describe(), "resetchannels -@all");
}

TEST_F(SelectorTest, OnlyWhatMayDoEverythingIsUnrestricted) {
  for (const char* const rule : {"allkeys", "allchannels"}) {
    ASSERT_EQ(apply(rule), "");
    EXPECT_FALSE(selector_.is_unrestricted());
  }
  ASSERT_EQ(apply("allcommands"), "");
  EXPECT_TRUE(selector_.is_unrestricted());
  ASSERT_EQ(apply("-get"), "");
  EXPECT_FALSE(selector_.is_unrestricted());
}

}  // namespace
}  // namespace server::acl
