// SPDX-License-Identifier: MIT
#include "server/commands/connection/connection_commands.h"

#include <gmock/gmock.h>

#include "protocol/error_texts.h"
#include "protocol/reply_writer.h"
#include "server/base/process/compatibility.h"
#include "server/commands/connection/client_name.h"
#include "server/commands/keys/database_index.h"
#include "server/dispatch/permissions.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using ConnectionCommandsTest = CommandTest;

TEST_F(ConnectionCommandsTest, PingAnswersPongOrItsMessage) {
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(run({"ping", "hi"}), bulk("hi"));
  EXPECT_EQ(run({"PING", "a", "b"}), error(protocol::wrong_arity("ping")));
}

TEST_F(ConnectionCommandsTest, SelectRefusesDatabasesThatDoNotExist) {
  EXPECT_EQ(run({"SELECT", "15"}), kOk);
  EXPECT_EQ(run({"SELECT", "16"}), error(kNotADatabase));
  EXPECT_EQ(run({"SELECT", "x"}), error(kNotAnInteger));
}

TEST_F(ConnectionCommandsTest, UnknownCommandNamesItsArguments) {
  EXPECT_EQ(run({"nope", "a", "b c"}), error(protocol::unknown_command("nope", "'a' 'b c' ")));
}

TEST_F(ConnectionCommandsTest, RefusedHelloChangesNothing) {
  EXPECT_THAT(run({"HELLO", "4"}), is_error("NOPROTO", "protocol version"));
  EXPECT_EQ(run({"HELLO", "3", "SETNAME", "a b"}), error(kInvalidClientName));
  EXPECT_EQ(client_->session->client->resp, protocol::RespVersion::kResp2);
}

TEST_F(ConnectionCommandsTest, HelloSwitchesToResp3) {
  EXPECT_TRUE(run({"HELLO", "3"}).starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
  EXPECT_EQ(client_->session->client->resp, protocol::RespVersion::kResp3);
}

TEST_F(ConnectionCommandsTest, HelloTellsWhatClientsAskFor) {
  const std::string reply = run({"HELLO", "3"});
  const std::string version = bulk(kCompatibleRedisVersion);
  EXPECT_EQ(reply, "%7\r\n" + bulk("server") + bulk("redis") + bulk("version") + version +
                       bulk("proto") + integer(3) + bulk("id") + integer(1) + bulk("mode") +
                       bulk("standalone") + bulk("role") + bulk("master") + bulk("modules") +
                       reply.substr(reply.find(bulk("modules")) + bulk("modules").size()));
  EXPECT_TRUE(run({"HELLO", "2"}).starts_with("*14\r\n"));
}

TEST_F(ConnectionCommandsTest, HelloNamesTheAvailabilityZone) {
  EXPECT_EQ(run({"CONFIG", "SET", "availability-zone", "eu-1a"}), kOk);
  const std::string reply = run({"HELLO", "3"});
  EXPECT_TRUE(reply.starts_with("%8\r\n"));
  EXPECT_NE(reply.find(bulk("availability_zone") + bulk("eu-1a")), std::string::npos);
  EXPECT_TRUE(run({"HELLO", "2"}).starts_with("*16\r\n"));
}

class PasswordTest : public CommandTest {
 protected:
  void SetUp() override {
    EXPECT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
    client_->session->authenticated = false;
    other_->session->authenticated = false;
  }

  const std::string kWrong = error(kWrongPassword);
  const std::string kNoPassword = error(kNotAuthenticated);
};

TEST_F(PasswordTest, HelloNeedsCredentialsToo) {
  EXPECT_THAT(run({"HELLO", "3"}), is_error("NOAUTH", "HELLO"));
}

TEST_F(PasswordTest, AuthOpensTheSession) {
  EXPECT_EQ(run({"AUTH", "bad"}), kWrong);
  EXPECT_EQ(run({"AUTH", "nobody", "secret"}), kWrong);
  EXPECT_EQ(run({"AUTH", "default", "bad"}), kWrong);
  EXPECT_EQ(run({"AUTH"}), error(protocol::wrong_arity("auth")));
  EXPECT_EQ(run({"PING"}), kNoPassword);
  EXPECT_EQ(run({"AUTH", "secret"}), kOk);
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  // After a failed AUTH the connection keeps its present user.
  EXPECT_EQ(run({"AUTH", "bad"}), kWrong);
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(run({"AUTH", "default", "secret"}), kOk);
  EXPECT_EQ(run_as_other({"PING"}), kNoPassword);
}

TEST_F(PasswordTest, HelloMayAuthenticate) {
  EXPECT_EQ(run({"HELLO", "3", "AUTH", "default", "bad"}), kWrong);
  // A rejected HELLO changes nothing: the protocol is still RESP2.
  EXPECT_EQ(run({"AUTH", "secret"}), kOk);
  EXPECT_EQ(run({"GET", "none"}), kNull);
  const std::string reply =
      run_as_other({"HELLO", "3", "AUTH", "default", "secret", "SETNAME", "me"});
  EXPECT_NE(reply.find(bulk("proto") + integer(3)), std::string::npos);
  EXPECT_EQ(run_as_other({"CLIENT", "GETNAME"}), bulk("me"));
  EXPECT_EQ(run_as_other({"GET", "none"}), "_\r\n");
}

TEST_F(ConnectionCommandsTest, AuthWithoutAPasswordSetIsAnError) {
  EXPECT_EQ(run({"AUTH", "x"}), error(kNoPasswordToCheck));
}

}  // namespace
}  // namespace server
