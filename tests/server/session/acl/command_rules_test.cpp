// SPDX-License-Identifier: MIT
#include "server/session/acl/command_rules.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "server/session/acl/rule_error.h"
#include "tests/server/session/acl/acl_fixture.h"

namespace server::acl {
namespace {

class CommandRulesTest : public ::testing::Test {
 protected:
  // Applies the rule. Returns its error, or "".
  std::string apply(std::string_view rule) {
    const auto applied = rules_.apply(rule);
    return applied ? "" : applied.error().message;
  }
  std::string text_after(const std::vector<std::string>& rules) {
    rules_.set_all(false);
    for (const std::string& rule : rules) EXPECT_EQ(apply(rule), "") << rule;
    rules_.simplify();
    return rules_.text();
  }
  bool allows(size_t command, std::string_view argument = "") {
    return rules_.allows(command, argument.empty() ? nullptr : &argument);
  }

  const CommandTable table_ = test_table();
  CommandRules rules_{table_};
};

TEST_F(CommandRulesTest, NothingIsAllowedAtFirst) {
  for (size_t i = 0; i < table_.size(); ++i) EXPECT_FALSE(allows(i));
  EXPECT_EQ(rules_.text(), "-@all");
  EXPECT_FALSE(rules_.allows_all());
}

TEST_F(CommandRulesTest, AContainerBringsItsSubcommands) {
  EXPECT_EQ(text_after({"+config"}), "-@all +config");
  EXPECT_TRUE(allows(kConfigGet));
  EXPECT_EQ(text_after({"+config", "-Config|SET"}), "-@all +config -config|set");
  EXPECT_TRUE(allows(kConfigGet));
  EXPECT_FALSE(allows(kConfigSet));
  EXPECT_EQ(text_after({"+config|get"}), "-@all +config|get");
  EXPECT_FALSE(allows(kConfigSet));
}

TEST_F(CommandRulesTest, CategoriesReachSubcommandsToo) {
  EXPECT_EQ(text_after({"+@admin"}), "-@all +@admin");
  EXPECT_TRUE(allows(kConfigGet));
  EXPECT_FALSE(allows(kGet));
  EXPECT_EQ(text_after({"+@all", "-@admin"}), "+@all -@admin");
  EXPECT_FALSE(allows(kConfigSet));
  EXPECT_TRUE(allows(kPing));
  EXPECT_FALSE(rules_.allows_all());
}

TEST_F(CommandRulesTest, AllIsAllEvenWhenItIsPutTogether) {
  EXPECT_EQ(text_after({"+@all"}), "+@all");
  EXPECT_TRUE(rules_.allows_all());
  EXPECT_EQ(text_after({"+@all", "-get", "+get"}), "+@all");
  EXPECT_TRUE(rules_.allows_all());
  // These rules name each command of this version. They do not allow commands that a later version
  // adds.
  text_after({"+get", "+set", "+select", "+config", "+ping"});
  EXPECT_FALSE(rules_.allows_all());
}

TEST_F(CommandRulesTest, RulesWithoutEffectAreDropped) {
  EXPECT_EQ(text_after({"+@read", "-get", "+get"}), "-@all +@read");
  EXPECT_EQ(text_after({"+get", "+@read"}), "-@all +@read");
  EXPECT_EQ(text_after({"+@all", "-@all", "-config"}), "-@all");
  EXPECT_EQ(text_after({"+config|get", "+config"}), "-@all +config");
}

TEST_F(CommandRulesTest, AFirstArgumentMayBeAllowed) {
  EXPECT_EQ(text_after({"+select|0", "+select|A"}), "-@all +select|0 +select|a");
  EXPECT_EQ(text_after({"+select|0", "+select|a", "+select|0"}), "-@all +select|a +select|0");
  EXPECT_TRUE(allows(kSelect, "0"));
  EXPECT_TRUE(allows(kSelect, "a"));
  EXPECT_FALSE(allows(kSelect, "1"));
  EXPECT_FALSE(allows(kSelect));
  EXPECT_EQ(text_after({"+select|0", "-select"}), "-@all");
  EXPECT_FALSE(allows(kSelect, "0"));
  EXPECT_EQ(text_after({"+select", "+select|0"}), "-@all +select");
}

TEST_F(CommandRulesTest, FirstArgumentsAreBounded) {
  for (int i = 0; i < 128; ++i) ASSERT_EQ(apply("+select|" + std::to_string(i)), "");
  EXPECT_EQ(apply("+ping|x"), kTooManyArgumentRules);
  EXPECT_EQ(apply("+select"), "");
  EXPECT_EQ(apply("+ping|x"), "");
}

TEST_F(CommandRulesTest, WrongRulesGetRedisErrors) {
  for (const char* const rule : {"+", "-", "+@", "+foo", "-foo", "+@foo", "+config|foo",
                                 "-select|0", "+|", "+get|a|b", "+foo|a", "-config|"}) {
    EXPECT_EQ(apply(rule), kUnknownCommandRule) << rule;
  }
  EXPECT_EQ(apply("+select|"), kRuleSyntax);
  EXPECT_EQ(apply("+config|"), kRuleSyntax);
  EXPECT_EQ(apply("+config|get|x"), kSubcommandArgumentRule);
  // apply() rejects a rule with a space or a zero byte, because text() could not reproduce this
  // rule.
  EXPECT_EQ(apply("+select|a b"), kRuleSyntax);
  EXPECT_EQ(apply(std::string_view("+select|a\0b", 11)), kRuleSyntax);
}

TEST_F(CommandRulesTest, TheTextMakesTheSameRules) {
  const std::vector<std::string> rules{
      "+@all",   "-@all",     "+@read",    "-@read",  "+@write", "+@slow",      "-@slow", "+@admin",
      "-@admin", "+get",      "-get",      "+config", "-config", "+config|get", "+ping",  "-ping",
      "+select", "+select|0", "+select|1", "-select", "+ping|x", "-config|get"};
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): every run must test the same rules
  for (int round = 0; round < 500; ++round) {
    rules_.set_all(false);
    for (size_t i = random() % 9; i > 0; --i) ASSERT_EQ(apply(rules[random() % rules.size()]), "");
    const CommandRules before = rules_;
    rules_.simplify();
    CommandRules again(table_);
    std::string text = rules_.text();
    while (!text.empty()) {
      const size_t end = std::min(text.find(' '), text.size());
      ASSERT_TRUE(again.apply(text.substr(0, end)));
      text.erase(0, std::min(end + 1, text.size()));
    }
    for (size_t command = 0; command < table_.size(); ++command) {
      for (const std::string_view argument : {"0", "1", "x"}) {
        ASSERT_EQ(before.allows(command, &argument), again.allows(command, &argument));
      }
    }
    ASSERT_EQ(before.allows_all(), again.allows_all());
    ASSERT_EQ(again.text(), rules_.text());
    again.simplify();
    ASSERT_EQ(again.text(), rules_.text());
  }
}

}  // namespace
}  // namespace server::acl
