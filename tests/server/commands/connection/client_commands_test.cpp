// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "protocol/error_texts.h"
#include "server/commands/connection/client_filter.h"
#include "server/commands/connection/client_name.h"
#include "server/dispatch/permissions.h"
#include "server/session/awaited_reply.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/test_threads.h"

namespace server {
namespace {

using ClientCommandsTest = CommandTest;

TEST_F(ClientCommandsTest, NamesAreKeptAndForgeNoLine) {
  EXPECT_EQ(run({"CLIENT", "GETNAME"}), kNull);
  EXPECT_EQ(run({"CLIENT", "GETREDIR"}), integer(-1));
  EXPECT_EQ(run({"CLIENT", "SETNAME", "a b"}), error(kInvalidClientName));
  EXPECT_EQ(run({"CLIENT", "SETNAME", std::string(1025, 'n')}), error(kLongClientName));
  EXPECT_EQ(run({"HELLO", "2", "SETNAME", std::string(1025, 'n')}), error(kLongClientName));
  EXPECT_EQ(run({"CLIENT", "SETINFO", "LIB-NAME", std::string(1025, 'n')}), error(kLongClientName));
  EXPECT_EQ(run({"CLIENT", "SETNAME", std::string(1024, 'n')}), kOk);
  EXPECT_EQ(run({"CLIENT", "SETNAME", "worker"}), kOk);
  EXPECT_EQ(run({"CLIENT", "GETNAME"}), bulk("worker"));
  EXPECT_THAT(run({"CLIENT", "SETINFO", "lib-name", "x\n"}), is_error("ERR", "lib-name"));
  EXPECT_THAT(run({"CLIENT", "SETINFO", "colour", "red"}), is_error("ERR", "'colour'"));
  EXPECT_EQ(run({"CLIENT", "SETINFO", "LIB-VER", "1.2"}), kOk);
  EXPECT_NE(run({"CLIENT", "INFO"}).find(" lib-name= lib-ver=1.2 "), std::string::npos);
}

TEST_F(ClientCommandsTest, ListShowsAllOrTheNamedClients) {
  const std::string all = run({"CLIENT", "LIST"});
  EXPECT_NE(all.find("id=1 addr=127.0.0.1:1 laddr=127.0.0.1:2 "), std::string::npos);
  EXPECT_NE(all.find("id=2 "), std::string::npos);
  EXPECT_EQ(run({"CLIENT", "LIST", "ID", "2"}).find("id=1 "), std::string::npos);
  EXPECT_EQ(run({"CLIENT", "LIST", "TYPE", "pubsub"}), bulk(""));
  EXPECT_THAT(run({"CLIENT", "LIST", "TYPE", "x"}), is_error("ERR", "type 'x'"));
  EXPECT_EQ(run({"CLIENT", "LIST", "ID", "x"}), error(kListedIds.error));
}

TEST_F(ClientCommandsTest, KillSkipsItsCallerUnlessSkipmeIsNo) {
  EXPECT_EQ(run({"CLIENT", "KILL", "TYPE", "normal"}), integer(1));
  EXPECT_TRUE(other_->session->client->kill_requested.load());
  EXPECT_EQ(client_->last_result.outcome, Outcome::kDone);
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "1", "SKIPME", "no"}), integer(1));
  EXPECT_EQ(client_->last_result.outcome, Outcome::kClose);
}

TEST_F(ClientCommandsTest, KillInATransactionClosesItsCallerAfterExec) {
  run({"MULTI"});
  run({"CLIENT", "KILL", "ID", "1", "SKIPME", "no"});
  EXPECT_EQ(client_->last_result.outcome, Outcome::kDone);
  EXPECT_EQ(run({"EXEC"}), array({integer(1)}));
  EXPECT_EQ(client_->last_result.outcome, Outcome::kClose);
}

// Operators kill a client to be sure that it no longer changes anything.
TEST_F(ClientCommandsTest, KillIsAnsweredWhenTheClientHasStopped) {
  std::vector<Drain::Callback> stops;
  threads_.on_visit = [&stops](const auto& callback) { stops.push_back(callback); };
  run_as_other({"PING"});
  const std::string id = std::to_string(other_->session->client->id);
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", id}), "");
  EXPECT_TRUE(other_->session->client->kill_requested);
  EXPECT_EQ(client_->try_answer(), "");
  stops.at(0)();
  EXPECT_EQ(client_->try_answer(), integer(1));
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "99"}), integer(0)) << "there is nothing to wait for";
}

TEST_F(ClientCommandsTest, KillRefusesWhatItDoesNotKnow) {
  EXPECT_THAT(run({"CLIENT", "KILL", "1.2.3.4:1"}), is_error("ERR", "client"));
  EXPECT_THAT(run({"CLIENT", "KILL", ""}), is_error("ERR", "client"));
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "0"}), error(kKilledIds.error));
  EXPECT_THAT(run({"CLIENT", "KILL", "USER", "x"}), is_error("ERR", "user 'x'"));
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "2", "ADDR"}), error(kSyntaxError));
}

TEST_F(ClientCommandsTest, AnEmptyAddressIsNobodys) {
  // Some sessions have no local address, for example the link to a leader.
  other_->session->client->local_address.clear();
  for (const char* const option : {"ADDR", "LADDR"}) {
    EXPECT_EQ(run({"CLIENT", "KILL", option, ""}), integer(0)) << option;
    EXPECT_EQ(run({"CLIENT", "KILL", option, "", "SKIPME", "no"}), integer(0)) << option;
    EXPECT_EQ(run({"CLIENT", "KILL", "TYPE", "normal", option, ""}), integer(0)) << option;
  }
  EXPECT_THAT(run({"CLIENT", "KILL", "USER", ""}), is_error("ERR", "user ''"));
  EXPECT_FALSE(other_->session->client->kill_requested.load());
  EXPECT_EQ(client_->last_result.outcome, Outcome::kDone);
}

TEST_F(ClientCommandsTest, KillFindsAClientByEachOfItsFields) {
  other_->session->client->address = "127.0.0.1:3";
  EXPECT_EQ(run({"CLIENT", "KILL", "ADDR", "127.0.0.1:4"}), integer(0));
  EXPECT_EQ(run({"CLIENT", "KILL", "ADDR", "127.0.0.1:3", "LADDR", "127.0.0.1:1"}), integer(0));
  EXPECT_FALSE(other_->session->client->kill_requested.load());
  using Words = std::vector<std::string>;
  for (const Words& fields :
       {Words{"ADDR", "127.0.0.1:3"}, Words{"LADDR", "127.0.0.1:2"}, Words{"USER", "default"},
        Words{"ADDR", "127.0.0.1:3", "LADDR", "127.0.0.1:2", "USER", "default"}}) {
    Words command{"CLIENT", "KILL"};
    command.insert(command.end(), fields.begin(), fields.end());
    EXPECT_EQ(run(command), integer(1)) << fields[0];
    EXPECT_EQ(run(command), integer(0)) << "it has gone, though its thread has not closed it";
    EXPECT_TRUE(other_->session->client->kill_requested.exchange(false));
  }
  EXPECT_EQ(run({"CLIENT", "KILL", "127.0.0.1:3"}), kOk);
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
  EXPECT_EQ(run({"CLIENT", "PAUSE", "-1"}), error(protocol::kNegativeTimeout));
  EXPECT_EQ(run({"CLIENT", "PAUSE", "1000"}), kOk);
  run_as_other({"PING"});
  EXPECT_EQ(other_->last_result.outcome, Outcome::kHeldBack);
  EXPECT_EQ(run({"CLIENT", "UNPAUSE"}), kOk);
  EXPECT_EQ(run_as_other({"PING"}), "+PONG\r\n");
}

TEST_F(ClientCommandsTest, PauseIsAnsweredWhenNoWriteIsUnderWay) {
  Drain::Callback end_writes;
  threads_.on_visit = [&end_writes](const auto& callback) { end_writes = callback; };
  int wakes = 0;
  client_->session->client->wake = [&wakes] { ++wakes; };
  EXPECT_EQ(run({"CLIENT", "PAUSE", "1000", "WRITE"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kBlocked);
  ASSERT_TRUE(client_->last_result.pending.reply);
  EXPECT_FALSE(client_->last_result.pending.reply->can_be_unblocked());
  run_as_other({"SET", "a", "1"});
  EXPECT_EQ(other_->last_result.outcome, Outcome::kHeldBack);
  EXPECT_EQ(client_->try_answer(), "");
  end_writes();
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(client_->try_answer(), kOk);
}

// CLIENT PAUSE usually replies when running writes have ended. Inside a transaction no command can
// wait, so EXEC returns its reply at once.
TEST_F(ClientCommandsTest, PauseInsideATransactionIsAnsweredAtOnce) {
  threads_.on_visit = [](const auto&) {};
  run({"MULTI"});
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  EXPECT_EQ(run({"EXEC"}), array({kOk}));
  EXPECT_FALSE(client_->last_result.pending.reply);
}

TEST_F(ClientCommandsTest, WrongCommandsAreRejectedDuringAPause) {
  run({"CONFIG", "SET", "requirepass", "secret"});
  run({"CLIENT", "PAUSE", "1000", "ALL"});
  EXPECT_EQ(run_as_other({"SET", "a"}), error(protocol::wrong_arity("set")));
  EXPECT_EQ(run_as_other({"GET"}), error(protocol::wrong_arity("get")));
  other_->session->authenticated = false;
  EXPECT_EQ(run_as_other({"GET", "a"}), error(kNotAuthenticated));
  // AUTH works during the pause, because the client that ends the pause may have to log in.
  EXPECT_EQ(run_as_other({"AUTH", "secret"}), kOk);
  EXPECT_EQ(run_as_other({"CLIENT", "UNPAUSE"}), kOk);
}

TEST_F(ClientCommandsTest, PausedClientsCountAsBlocked) {
  other_->session->client->wait = ClientWait::kPaused;
  EXPECT_NE(run({"INFO", "clients"}).find("\r\nblocked_clients:1\r\n"), std::string::npos);
}

TEST_F(ClientCommandsTest, MaintenanceNotificationsAreUnknown) {
  EXPECT_EQ(run({"CLIENT", "MAINT_NOTIFICATIONS", "ON"}),
            error(protocol::unknown_subcommand("MAINT_NOTIFICATIONS", "CLIENT")));
}

TEST_F(ClientCommandsTest, ListCountsWhatIsQueued) {
  const auto figure = [&](const std::string& name) {
    const std::string line = run({"CLIENT", "LIST", "ID", "2"});
    return std::stoll(line.substr(line.find(" " + name + "=") + name.size() + 2));
  };
  run_as_other({"MULTI"});
  EXPECT_EQ(figure("multi-mem"), 0);
  const auto total_bytes = figure("tot-mem");
  run_as_other({"SET", "k", std::string(50'000, 'x')});
  EXPECT_GT(figure("multi-mem"), 50'000);
  EXPECT_LT(figure("multi-mem"), 60'000);
  EXPECT_GE(figure("tot-mem") - total_bytes, 50'000);
  run_as_other({"EXEC"});
  EXPECT_EQ(figure("multi-mem"), 0);
}

}  // namespace
}  // namespace server
