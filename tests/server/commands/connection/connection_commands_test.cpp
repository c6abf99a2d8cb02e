// SPDX-License-Identifier: MIT
#include "tests/support/command_test.h"

namespace server {
namespace {

using ConnectionCommandsTest = CommandTest;

TEST_F(ConnectionCommandsTest, PingAnswersPongOrItsMessage) {
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(run({"ping", "hi"}), bulk("hi"));
  EXPECT_EQ(run({"PING", "a", "b"}), error("ERR wrong number of arguments for 'ping' command"));
}

TEST_F(ConnectionCommandsTest, SelectRefusesDatabasesThatDoNotExist) {
  EXPECT_EQ(run({"SELECT", "15"}), kOk);
  EXPECT_EQ(run({"SELECT", "16"}), error("ERR DB index is out of range"));
  EXPECT_EQ(run({"SELECT", "x"}), error("ERR value is not an integer or out of range"));
}

TEST_F(ConnectionCommandsTest, UnknownCommandNamesItsArguments) {
  EXPECT_EQ(run({"nope", "a", "b c"}),
            error("ERR unknown command 'nope', with args beginning with: 'a' 'b c' "));
}

TEST_F(ConnectionCommandsTest, RefusedHelloChangesNothing) {
  EXPECT_EQ(run({"HELLO", "4"}), error("NOPROTO unsupported protocol version"));
  EXPECT_EQ(run({"HELLO", "3", "SETNAME", "a b"}),
            error("ERR Client names cannot contain spaces, newlines or special characters."));
  EXPECT_EQ(client_->session->resp, protocol::RespVersion::kResp2);
}

TEST_F(ConnectionCommandsTest, HelloSwitchesToResp3) {
  EXPECT_TRUE(run({"HELLO", "3"}).starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
  EXPECT_EQ(client_->session->resp, protocol::RespVersion::kResp3);
}

}  // namespace
}  // namespace server
