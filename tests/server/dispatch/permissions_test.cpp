// SPDX-License-Identifier: MIT
#include "server/dispatch/permissions.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "server/dispatch/registry.h"
#include "server/session/acl/command_table.h"
#include "server/session/acl/user.h"
#include "server/session/acl/users.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class PermissionsTest : public CommandTest {
 protected:
  // Returns "OK" if a user with these rules may run the command. Otherwise returns the error that
  // ACL DRYRUN reports.
  std::string denial(const std::vector<std::string_view>& rules,
                     const std::vector<std::string>& command) {
    acl::User user("u", users_.table(), acl::ChannelDefault::kResetChannels);
    EXPECT_FALSE(user.apply_all(rules));
    const std::vector<std::string_view> args(command.begin(), command.end());
    const auto result = dry_run(*registry_, user, args);
    if (!result) return result.error().message;
    return result->is_allowed ? "OK" : result->lack;
  }
  static std::string no_key(const std::string& key) {
    return "This user has no permissions to access the '" + key + "' key";
  }
  static std::string no_command(const std::string& name) {
    return "This user has no permissions to run the '" + name + "' command";
  }
};

TEST_F(PermissionsTest, KeysNeedTheAccessThatTheCommandTakes) {
  EXPECT_EQ(denial({"+@all", "%R~k"}, {"GET", "k"}), "OK");
  EXPECT_EQ(denial({"+@all", "%W~k"}, {"GET", "k"}), no_key("k"));
  EXPECT_EQ(denial({"+@all", "%W~k"}, {"SET", "k", "v"}), "OK");
  EXPECT_EQ(denial({"+@all", "%W~k"}, {"SET", "k", "v", "GET"}), no_key("k"));
  EXPECT_EQ(denial({"+@all", "%R~k"}, {"SET", "k", "v"}), no_key("k"));
  EXPECT_EQ(denial({"+@all", "%R~a", "%W~b"}, {"COPY", "a", "b"}), "OK");
  EXPECT_EQ(denial({"+@all", "%R~a", "%W~b"}, {"COPY", "b", "a"}), no_key("b"));
  EXPECT_EQ(denial({"+@all", "~a", "~b"}, {"MGET", "a", "b", "c"}), no_key("c"));
  // EXISTS does not reveal the value of the key. So the right to read the key or the right to write
  // it suffices.
  EXPECT_EQ(denial({"+@all", "%W~k"}, {"EXISTS", "k"}), "OK");
  EXPECT_EQ(denial({"+@all"}, {"EXISTS", "k"}), no_key("k"));
}

TEST_F(PermissionsTest, FiltersAreKeysToo) {
  EXPECT_EQ(denial({"+@bloom", "%R~f"}, {"BF.EXISTS", "f", "x"}), "OK");
  EXPECT_EQ(denial({"+@bloom", "%R~f"}, {"BF.ADD", "f", "x"}), no_key("f"));
  EXPECT_EQ(denial({"+@all", "-@bloom", "~*"}, {"BF.ADD", "f", "x"}), no_command("bf.add"));
}

TEST_F(PermissionsTest, ChannelsAreCheckedWhereTheyAreUsed) {
  EXPECT_EQ(denial({"+@pubsub", "&c*"}, {"SUBSCRIBE", "c1", "c2"}), "OK");
  EXPECT_EQ(denial({"+@pubsub", "&c*"}, {"SUBSCRIBE", "c1", "d"}),
            "This user has no permissions to access the 'd' channel");
  EXPECT_EQ(denial({"+@pubsub", "&c*"}, {"PSUBSCRIBE", "c1"}),
            "This user has no permissions to access the 'c1' channel");
  EXPECT_EQ(denial({"+@pubsub", "&c*"}, {"PSUBSCRIBE", "c*"}), "OK");
  EXPECT_EQ(denial({"+@pubsub", "&c*"}, {"PUBLISH", "c", "d"}), "OK");
  EXPECT_EQ(denial({"+@pubsub"}, {"PUBLISH", "c", "d"}),
            "This user has no permissions to access the 'c' channel");
  // SPUBLISH needs no rights to keys. UNSUBSCRIBE and PUBSUB need rights neither to keys nor to
  // channels.
  EXPECT_EQ(denial({"+@pubsub", "&c*"}, {"SPUBLISH", "c", "d"}), "OK");
  EXPECT_EQ(denial({"+@pubsub"}, {"UNSUBSCRIBE", "x"}), "OK");
  EXPECT_EQ(denial({"+@pubsub"}, {"PUBSUB", "NUMSUB", "x"}), "OK");
}

TEST_F(PermissionsTest, TheSelectorThatComesFurthestTellsWhy) {
  EXPECT_EQ(denial({"+get", "~a", "(+get ~b)"}, {"GET", "b"}), "OK");
  EXPECT_EQ(denial({"(+mget ~a ~b)", "(+mget ~a)"}, {"MGET", "a", "b", "c"}), no_key("c"));
  EXPECT_EQ(denial({"+get", "(+set ~a)"}, {"GET", "a"}), no_key("a"));
  EXPECT_EQ(denial({"~*", "(+set ~a)"}, {"GET", "a"}), no_command("get"));
}

TEST_F(PermissionsTest, LoggingInIsAlwaysAllowed) {
  EXPECT_EQ(denial({}, {"AUTH", "x"}), "OK");
  for (const char* const command : {"HELLO", "QUIT", "RESET"}) {
    EXPECT_EQ(denial({}, {command}), "OK") << command;
  }
  EXPECT_EQ(denial({}, {"PING"}), no_command("ping"));
}

TEST_F(PermissionsTest, AWrongCountOfKeysIsLeftToTheCommand) {
  EXPECT_EQ(denial({"+@all", "~a"}, {"BF.CARD", "a"}), "OK");
  EXPECT_EQ(denial({"+@all", "~a"}, {"LCS", "a", "b"}), no_key("b"));
}

// The fast checks of a user's permissions must give the same answers as the full check.
TEST_F(PermissionsTest, EveryWayToAskGivesTheSameAnswer) {
  const std::vector<std::vector<std::string_view>> all_rules = {
      {"+@all", "~*"},
      {"+@all", "~a*", "%R~key:long:*", "%W~b"},
      {"+@read", "+ping", "~a*"},
      {"+@all", "-get", "%RW~a*", "&c"},
      {"+get", "~a*", "(+set %W~a*)", "(+@all ~key:long:prefix*)"},
      {"+@all"},
      {"~*", "+select|1"},
  };
  const std::vector<std::string_view> keys = {
      "a", "ab", "b", "", "abcdefghij", "key:long:", "key:long:prefix1"};
  size_t plain = 0;
  size_t allowed = 0;
  for (const auto& rules : all_rules) {
    auto user =
        std::make_shared<acl::User>("u", users_.table(), acl::ChannelDefault::kResetChannels);
    ASSERT_FALSE(user->apply_all(rules));
    const SessionUser identity{.user = user, .version = users_.version()};
    for (size_t i = 0; i < registry_->size(); ++i) {
      const RegisteredCommand& command = registry_->at(i);
      const auto words = static_cast<size_t>(std::abs(command.row->arity));
      for (const std::string_view key : keys) {
        for (size_t count = words; count < words + 3; ++count) {
          const std::vector<std::string_view> args(count, key);
          const bool is_allowed = !denial_of(*user, command, args);
          EXPECT_EQ(has_rights(identity, users_, command, args), is_allowed) << command.full_name;
          const bool is_plain = has_plain_rights(identity, users_.version(), command, args);
          EXPECT_FALSE(is_plain && !is_allowed) << command.full_name << ' ' << key;
          plain += is_plain ? 1 : 0;
          allowed += is_allowed ? 1 : 0;
          EXPECT_FALSE(has_plain_rights(identity, users_.version() + 1, command, args));
        }
      }
    }
  }
  // The fastest check, `plain`, must suffice for more than half of the commands that the users may
  // run.
  EXPECT_GT(plain, allowed / 2);
}

TEST_F(PermissionsTest, TheTableHasAllCommandsAndCategories) {
  const acl::CommandTable& table = users_.table();
  ASSERT_EQ(table.size(), registry_->size());
  for (size_t i = 0; i < table.size(); ++i) EXPECT_EQ(table.at(i).name, registry_->at(i).full_name);
  for (const char* const name : {"bloom", "read", "stream", "scripting", "all"}) {
    EXPECT_EQ(table.category_bit(name).has_value(), std::string_view(name) != "all") << name;
  }
  const size_t config = *table.find("config");
  EXPECT_FALSE(table.at(config).subcommands.empty());
  // Each category needs its own bit in the 32-bit mask that stores a set of categories.
  EXPECT_LE(table.category_names().size(), 32U);
}

}  // namespace
}  // namespace server
