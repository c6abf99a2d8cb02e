// SPDX-License-Identifier: MIT
#include "server/session/acl/users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/session/acl/access_log.h"
#include "tests/server/session/acl/acl_fixture.h"
#include "tests/support/error_matcher.h"

namespace server::acl {
namespace {

class UsersTest : public ::testing::Test {
 protected:
  std::string set(std::string_view name, const std::vector<std::string_view>& rules) {
    const auto done = users_.set(name, rules);
    return done ? "" : done.error().message;
  }
  std::string rules_of(std::string_view name) {
    const UserPtr user = users_.find(name);
    return user == nullptr ? "(none)" : user->describe();
  }

  Users users_{test_table()};
};

TEST_F(UsersTest, TheDefaultUserMayDoEverything) {
  EXPECT_TRUE(users_.is_open());
  EXPECT_TRUE(users_.default_user()->is_unrestricted());
  EXPECT_EQ(rules_of("default"), "on nopass ~* &* +@all");
}

TEST_F(UsersTest, APasswordClosesTheDefaultUser) {
  users_.set_default_password("x");
  EXPECT_FALSE(users_.is_open());
  EXPECT_FALSE(users_.has_no_password());
  EXPECT_NE(users_.authenticate("default", "x"), nullptr);
  EXPECT_EQ(users_.authenticate("default", "y"), nullptr);
  users_.set_default_password("");
  EXPECT_TRUE(users_.is_open());
  ASSERT_EQ(set("default", {"off"}), "");
  EXPECT_FALSE(users_.is_open());
  EXPECT_TRUE(users_.has_no_password());
  EXPECT_EQ(users_.authenticate("default", "any"), nullptr);
}

TEST_F(UsersTest, OnlyThePasswordOfAUserThatIsOnLogsIn) {
  ASSERT_EQ(set("alice", {">a", ">b"}), "");
  EXPECT_EQ(users_.authenticate("alice", "a"), nullptr);
  ASSERT_EQ(set("alice", {"on"}), "");
  EXPECT_NE(users_.authenticate("alice", "a"), nullptr);
  EXPECT_NE(users_.authenticate("alice", "b"), nullptr);
  EXPECT_EQ(users_.authenticate("alice", ""), nullptr);
  EXPECT_EQ(users_.authenticate("bob", "a"), nullptr);
  ASSERT_EQ(set("alice", {"nopass"}), "");
  EXPECT_NE(users_.authenticate("alice", "anything"), nullptr);
  // After resetpass, the user has neither a password nor nopass, so no client can log in as this
  // user.
  ASSERT_EQ(set("alice", {"resetpass"}), "");
  EXPECT_EQ(users_.authenticate("alice", ""), nullptr);
}

TEST_F(UsersTest, AWrongRuleChangesNothing) {
  ASSERT_EQ(set("alice", {"on", "+get"}), "");
  const uint64_t version = users_.version();
  EXPECT_THAT(set("alice", {"off", "+foo"}), is_error("ERR", "'+foo'"));
  EXPECT_THAT(set("alice", {"off", "(+get"}), is_error("ERR", "'(+get'"));
  EXPECT_EQ(set("bob", {"+foo"}).substr(0, 3), "ERR");
  EXPECT_EQ(set("a b", {}), kInvalidUserName);
  EXPECT_EQ(rules_of("alice"), "on resetchannels -@all +get");
  EXPECT_EQ(users_.find("bob"), nullptr);
  EXPECT_EQ(users_.version(), version);
}

TEST_F(UsersTest, APublishedUserDoesNotChange) {
  ASSERT_EQ(set("alice", {"on"}), "");
  const UserPtr before = users_.find("alice");
  const uint64_t version = users_.version();
  ASSERT_EQ(set("alice", {"+get"}), "");
  EXPECT_EQ(before->describe(), "on resetchannels -@all");
  EXPECT_EQ(users_.find("alice")->id, before->id);
  EXPECT_GT(users_.version(), version);
  // A user that is deleted and created again under the same name counts as a different user.
  EXPECT_TRUE(users_.remove("alice"));
  EXPECT_FALSE(users_.remove("alice"));
  ASSERT_EQ(set("alice", {"on"}), "");
  EXPECT_NE(users_.find("alice")->id, before->id);
}

TEST_F(UsersTest, NewUsersGetTheDefaultChannels) {
  ASSERT_EQ(set("alice", {}), "");
  users_.set_channel_default(ChannelDefault::kAllChannels);
  ASSERT_EQ(set("bob", {}), "");
  EXPECT_EQ(rules_of("alice"), "off resetchannels -@all");
  EXPECT_EQ(rules_of("bob"), "off &* -@all");
  ASSERT_EQ(set("alice", {"reset"}), "");
  EXPECT_EQ(rules_of("alice"), "off sanitize-payload &* -@all");
}

TEST_F(UsersTest, AllAreReplacedOrNone) {
  ASSERT_EQ(set("alice", {"on", "+get"}), "");
  ASSERT_EQ(set("bob", {"on"}), "");
  users_.set_default_password("x");
  const uint64_t alice = users_.find("alice")->id;
  const std::vector<UserDefinition> wrong{{"carol", {"+foo"}, 1}, {"carol", {}, 2}, {"a b", {}, 3}};
  const auto faults = users_.replace_all(wrong, UndefinedDefault::kOpen);
  EXPECT_EQ(faults.size(), 3U);
  EXPECT_EQ(users_.list().size(), 3U);

  const std::vector<UserDefinition> right{{"carol", {"on"}, 1}, {"alice", {"+get", "on"}, 2}};
  EXPECT_TRUE(users_.replace_all(right, UndefinedDefault::kKept).empty());
  EXPECT_FALSE(users_.is_open());
  EXPECT_EQ(users_.list().size(), 3U);
  EXPECT_EQ(users_.find("alice")->id, alice);
  EXPECT_TRUE(users_.replace_all(right, UndefinedDefault::kOpen).empty());
  EXPECT_TRUE(users_.is_open());
  // A user whose definition in the file has changed gets another id.
  const std::vector<UserDefinition> changed{{"alice", {"on"}, 1}};
  EXPECT_TRUE(users_.replace_all(changed, UndefinedDefault::kOpen).empty());
  EXPECT_NE(users_.find("alice")->id, alice);
}

}  // namespace
}  // namespace server::acl
