// SPDX-License-Identifier: MIT
#include "server/session/session_user.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "server/session/acl/access_log.h"
#include "server/session/acl/users.h"
#include "server/session/session.h"
#include "tests/server/session/acl/acl_fixture.h"

namespace server {
namespace {

class SessionUserTest : public ::testing::Test {
 protected:
  void set(std::string_view name, const std::vector<std::string_view>& rules) {
    ASSERT_TRUE(users_.set(name, rules));
  }
  void log_in(std::string_view name) { set_user(session_, users_.find(name), users_.version()); }
  bool is_trusted() const { return session_.identity.trusted_version == users_.version(); }

  acl::Users users_{acl::test_table()};
  Session session_{1};
};

TEST_F(SessionUserTest, AFreshSessionIsTheDefaultUser) {
  EXPECT_FALSE(is_trusted());
  EXPECT_TRUE(refresh_user(session_, users_));
  EXPECT_TRUE(is_trusted());
  EXPECT_EQ(session_.identity.user->name(), "default");
  EXPECT_FALSE(session_.authenticated);
  set_default_user(session_, users_);
  EXPECT_TRUE(session_.authenticated);
  users_.set_default_password("x");
  set_default_user(session_, users_);
  EXPECT_FALSE(session_.authenticated);
}

TEST_F(SessionUserTest, ChangesAreFollowed) {
  set("alice", {"on", "+@all", "~*", "&*"});
  log_in("alice");
  EXPECT_EQ(session_.client->names.get().user, "alice");
  EXPECT_TRUE(is_trusted());
  set("alice", {"-get"});
  EXPECT_FALSE(is_trusted());
  EXPECT_TRUE(refresh_user(session_, users_));
  EXPECT_FALSE(is_trusted());
  set("alice", {"+get"});
  EXPECT_TRUE(refresh_user(session_, users_));
  EXPECT_TRUE(is_trusted());
  // Any change of users makes the session look up its own user again. A change of another user has
  // no further effect.
  set("bob", {});
  EXPECT_FALSE(is_trusted());
  EXPECT_TRUE(refresh_user(session_, users_));
  EXPECT_TRUE(is_trusted());
}

TEST_F(SessionUserTest, ASessionEndsWithItsUser) {
  set("alice", {"on"});
  log_in("alice");
  users_.remove("alice");
  EXPECT_FALSE(refresh_user(session_, users_));
  // A user that is created again under the same name is a different user.
  set("alice", {"on", "+@all"});
  EXPECT_FALSE(refresh_user(session_, users_));
}

TEST_F(SessionUserTest, ASubscriberEndsWithItsRightToListen) {
  set("alice", {"on", "&a*", "&b"});
  log_in("alice");
  session_.subscriptions.add(SubscriptionKind::kChannel, "a1", 1);
  session_.subscriptions.add(SubscriptionKind::kPattern, "a*", 2);
  set("alice", {"resetchannels", "&a*"});
  EXPECT_TRUE(refresh_user(session_, users_));
  set("alice", {"resetchannels", "&a1", "&b"});
  EXPECT_FALSE(refresh_user(session_, users_));
}

TEST_F(SessionUserTest, AJournalIsTrustedWhateverItsUserMayDo) {
  session_.origin = CommandOrigin::kOwnJournal;
  users_.set_default_password("x");
  set("default", {"-@all", "resetkeys"});
  EXPECT_TRUE(refresh_user(session_, users_));
  EXPECT_TRUE(is_trusted());
}

}  // namespace
}  // namespace server
