// SPDX-License-Identifier: MIT
#include "tests/support/command_test.h"

namespace server {
namespace {

using ClientCommandsTest = CommandTest;

TEST_F(ClientCommandsTest, NamesAreKeptAndForgeNoLine) {
  EXPECT_EQ(run({"CLIENT", "GETNAME"}), kNull);
  EXPECT_EQ(run({"CLIENT", "GETREDIR"}), integer(-1));
  EXPECT_EQ(run({"CLIENT", "SETNAME", "a b"}),
            error("ERR Client names cannot contain spaces, newlines or special characters."));
  EXPECT_EQ(run({"CLIENT", "SETNAME", "worker"}), kOk);
  EXPECT_EQ(run({"CLIENT", "GETNAME"}), bulk("worker"));
  EXPECT_EQ(run({"CLIENT", "SETINFO", "lib-name", "x\n"}),
            error("ERR lib-name cannot contain spaces, newlines or special characters."));
  EXPECT_EQ(run({"CLIENT", "SETINFO", "colour", "red"}), error("ERR Unrecognized option 'colour'"));
  EXPECT_EQ(run({"CLIENT", "SETINFO", "LIB-VER", "1.2"}), kOk);
  EXPECT_NE(run({"CLIENT", "INFO"}).find(" lib-name= lib-ver=1.2\n"), std::string::npos);
}

TEST_F(ClientCommandsTest, ListShowsAllOrTheNamedClients) {
  const std::string all = run({"CLIENT", "LIST"});
  EXPECT_NE(all.find("id=1 addr=127.0.0.1:1 laddr=127.0.0.1:2 "), std::string::npos);
  EXPECT_NE(all.find("id=2 "), std::string::npos);
  EXPECT_EQ(run({"CLIENT", "LIST", "ID", "2"}).find("id=1 "), std::string::npos);
  EXPECT_EQ(run({"CLIENT", "LIST", "TYPE", "pubsub"}), bulk(""));
  EXPECT_EQ(run({"CLIENT", "LIST", "TYPE", "x"}), error("ERR Unknown client type 'x'"));
  EXPECT_EQ(run({"CLIENT", "LIST", "ID", "x"}), error("ERR Invalid client ID"));
}

TEST_F(ClientCommandsTest, KillSparesItsCallerUnlessToldOtherwise) {
  EXPECT_EQ(run({"CLIENT", "KILL", "TYPE", "normal"}), integer(1));
  EXPECT_TRUE(other_->session->kill_requested.load());
  EXPECT_FALSE(client_->session->close_after_reply);
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "1", "SKIPME", "no"}), integer(1));
  EXPECT_EQ(client_->last_outcome, Outcome::kClose);
}

TEST_F(ClientCommandsTest, KillRefusesWhatItDoesNotKnow) {
  EXPECT_EQ(run({"CLIENT", "KILL", "1.2.3.4:1"}), error("ERR No such client"));
  EXPECT_EQ(run({"CLIENT", "KILL", ""}), error("ERR No such client"));
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "0"}), error("ERR client-id should be greater than 0"));
  EXPECT_EQ(run({"CLIENT", "KILL", "USER", "x"}), error("ERR No such user 'x'"));
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "2", "ADDR"}), error("ERR syntax error"));
}

TEST_F(ClientCommandsTest, ReplyOffSilencesErrorsToo) {
  EXPECT_EQ(run({"CLIENT", "REPLY", "OFF"}), "");
  EXPECT_EQ(run({"PING"}), "");
  EXPECT_EQ(run({"nope"}), "");
  EXPECT_EQ(run({"CLIENT", "REPLY", "ON"}), kOk);
  EXPECT_EQ(run({"CLIENT", "REPLY", "SKIP"}), "");
  EXPECT_EQ(run({"PING"}), "");
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
}

TEST_F(ClientCommandsTest, PauseHoldsOthersBackUntilUnpause) {
  EXPECT_EQ(run({"CLIENT", "PAUSE", "-1"}), error("ERR timeout is negative"));
  EXPECT_EQ(run({"CLIENT", "PAUSE", "1000"}), kOk);
  run_as_other({"PING"});
  EXPECT_EQ(other_->last_outcome, Outcome::kHeldBack);
  EXPECT_EQ(run({"CLIENT", "UNPAUSE"}), kOk);
  EXPECT_EQ(run_as_other({"PING"}), "+PONG\r\n");
}

TEST_F(ClientCommandsTest, MaintenanceNotificationsAreUnknown) {
  EXPECT_EQ(run({"CLIENT", "MAINT_NOTIFICATIONS", "ON"}),
            error("ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP."));
}

}  // namespace
}  // namespace server
