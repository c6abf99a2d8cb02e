// SPDX-License-Identifier: MIT
#include "server/session/acl/acl_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "server/base/config/config.h"
#include "server/session/acl/access_log.h"
#include "server/session/acl/user.h"
#include "server/session/acl/users.h"
#include "tests/server/session/acl/acl_fixture.h"

namespace server::acl {
namespace {

class AclOptionsTest : public ::testing::Test {
 protected:
  bool set(const std::string& name, const std::string& value) {
    const std::array<NamedValue, 1> pairs{NamedValue{name, value}};
    return config_.set(pairs).has_value();
  }

  Config config_;
  Users users_{test_table()};
};

TEST_F(AclOptionsTest, RequirepassIsTheDefaultUsersPassword) {
  ASSERT_TRUE(prepare_users(users_, config_));
  EXPECT_TRUE(users_.is_open());
  ASSERT_TRUE(set("requirepass", "x"));
  EXPECT_FALSE(users_.is_open());
  EXPECT_NE(users_.authenticate("default", "x"), nullptr);
  // A change of acllog-max-len does not undo an earlier ACL SETUSER.
  const std::array<std::string_view, 1> rules{"nopass"};
  ASSERT_TRUE(users_.set("default", rules));
  ASSERT_TRUE(set("acllog-max-len", "1"));
  EXPECT_TRUE(users_.is_open());
}

TEST_F(AclOptionsTest, TheLogAndNewUsersFollowTheirOptions) {
  ASSERT_TRUE(prepare_users(users_, config_));
  ASSERT_TRUE(set("acllog-max-len", "1"));
  for (const char* const object : {"a", "b"}) {
    users_.log().add({.reason = Reason::kKey, .object = object, .user = "u", .client = ""}, 1);
  }
  EXPECT_EQ(users_.log().newest(10).size(), 1U);
  ASSERT_TRUE(set("acl-pubsub-default", "allchannels"));
  ASSERT_TRUE(users_.set("alice", {}));
  EXPECT_EQ(users_.find("alice")->describe(), "off &* -@all");
}

TEST_F(AclOptionsTest, InvalidUserIsReportedWithItsPlace) {
  const std::array<const char*, 4> argv{"bloomery-server", "--user", "alice", "+foo"};
  ASSERT_TRUE(config_.load(4, argv.data(), -1));
  const auto prepared = prepare_users(users_, config_);
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().message,
              ::testing::HasSubstr("at line 1 of the command line\n>>> 'user \"alice\" \"+foo\"'"));
}

}  // namespace
}  // namespace server::acl
