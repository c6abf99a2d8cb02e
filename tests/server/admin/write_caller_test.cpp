// SPDX-License-Identifier: MIT
#include "server/admin/write_caller.h"

#include <gmock/gmock.h>

#include <optional>

#include "server/dispatch/pause_gate.h"
#include "server/session/acl/users.h"
#include "tests/support/command_test.h"
#include "tests/support/write_thread.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class WriteCallerTest : public CommandTest {
 protected:
  void call(const std::vector<std::string>& words, const std::string& user = "default",
            int database = 0) {
    reply_.reset();
    caller_.call({users_.find(user), "127.0.0.1:5", database}, words,
                 [this](protocol::Reply reply) { reply_ = std::move(reply); });
  }

  WriteThread thread_{statistics_};
  WriteCaller caller_{services_, thread_.post()};
  std::optional<protocol::Reply> reply_;
};

TEST_F(WriteCallerTest, WritesInTheDatabaseAskedFor) {
  call({"BF.ADD", "f", "x"}, "default", 2);
  ASSERT_TRUE(reply_);
  EXPECT_FALSE(reply_->is_error()) << reply_->text;
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
  run({"SELECT", "2"});
  EXPECT_EQ(run({"BF.EXISTS", "f", "x"}), integer(1));
}

TEST_F(WriteCallerTest, RulesOfTheUserHold) {
  run({"ACL", "SETUSER", "eve", "on", ">pw", "+bf.add", "~mine:*"});
  call({"BF.ADD", "mine:f", "x"}, "eve");
  EXPECT_FALSE(reply_->is_error());
  call({"BF.ADD", "other", "x"}, "eve");
  EXPECT_THAT(reply_->text, StartsWith("NOPERM"));
  call({"DEL", "mine:f"}, "eve");
  EXPECT_THAT(reply_->text, StartsWith("NOPERM"));
  EXPECT_EQ(run({"EXISTS", "mine:f", "other"}), integer(1));
}

TEST_F(WriteCallerTest, TheReplyWaitsForTheLog) {
  thread_.log.end = 10;
  call({"BF.ADD", "f", "x"});
  EXPECT_FALSE(reply_);
  thread_.log.safe = 10;
  thread_.gate.release_safe();
  ASSERT_TRUE(reply_);
  EXPECT_FALSE(reply_->is_error());
}

TEST_F(WriteCallerTest, AFullDiskIsTheReply) {
  thread_.log.end = 10;
  thread_.log.is_failing = true;
  call({"BF.ADD", "f", "x"});
  ASSERT_TRUE(reply_);
  EXPECT_THAT(reply_->text, HasSubstr("IOERR"));
}

TEST_F(WriteCallerTest, PausedWritesAreRefused) {
  run({"CLIENT", "PAUSE", "10000", "WRITE"});
  call({"BF.ADD", "f", "x"});
  ASSERT_TRUE(reply_);
  EXPECT_THAT(reply_->text, StartsWith("BUSY"));
  run({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
  call({"BF.ADD", "f", "x"});
  EXPECT_FALSE(reply_->is_error());
}

}  // namespace
}  // namespace server::admin
