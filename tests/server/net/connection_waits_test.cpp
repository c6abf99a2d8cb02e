// SPDX-License-Identifier: MIT
//
// Tests the events that end the wait of a blocked client: an event that it waits for, its timeout,
// and its disconnect.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>

#include "tests/support/connection_fixture.h"
#include "tests/support/waiting.h"

namespace server::net {
namespace {

class ConnectionWaitsTest : public ConnectionFixture {
 protected:
  // Runs the loop until holds() is true. The timers of connections need real time.
  void serve_until(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds() && std::chrono::steady_clock::now() < deadline) {
      if (thread_.context.run_one_for(std::chrono::milliseconds(5)) > 0) end_round();
    }
    EXPECT_TRUE(holds());
  }
  std::string id() const { return std::to_string(remote_.client().id); }
};

TEST_F(ConnectionWaitsTest, APauseEndsByItself) {
  run({"CLIENT", "PAUSE", "20", "WRITE"});
  EXPECT_EQ(answer("SET a 1\r\nPING\r\n"), "");
  EXPECT_EQ(remote_.client().wait, ClientWait::kPaused);
  advance_ms(21);
  serve_until([this] { return remote_.client().wait == ClientWait::kNone; });
  EXPECT_EQ(received(), "+OK\r\n+PONG\r\n");
}

TEST_F(ConnectionWaitsTest, AClockThatStandsStillDoesNotEndAPause) {
  run({"CLIENT", "PAUSE", "20", "WRITE"});
  EXPECT_EQ(answer("SET a 1\r\n"), "");
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
  serve_until([until] { return std::chrono::steady_clock::now() > until; });
  EXPECT_EQ(received(), "");
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
  advance_ms(21);
  serve_until([this] { return remote_.client().wait == ClientWait::kNone; });
}

TEST_F(ConnectionWaitsTest, APausedReaderGoesOn) {
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  EXPECT_EQ(answer("GET a\r\n"), kNull);
  EXPECT_EQ(remote_.client().wait, ClientWait::kNone);
}

TEST_F(ConnectionWaitsTest, AWaitLooksAgainByItsTimer) {
  EXPECT_EQ(answer("WAIT 1 100\r\n"), "");
  advance_ms(101);
  serve_until([this] { return remote_.client().wait == ClientWait::kNone; });
  EXPECT_EQ(received(), integer(0));
}

TEST_F(ConnectionWaitsTest, AWaitWithoutAnEndIsNotEndedByTime) {
  EXPECT_EQ(answer("WAIT 1 0\r\n"), "");
  advance_ms(1'000'000);
  serve();
  EXPECT_EQ(received(), "");
  EXPECT_NE(remote_.client().wait, ClientWait::kNone);
  EXPECT_EQ(run({"CLIENT", "UNBLOCK", id()}), integer(1));
  connection_->wake();
  serve();
  EXPECT_EQ(received(), integer(0));
}

TEST_F(ConnectionWaitsTest, AKilledClientIsClosedInEveryWait) {
  for (const char* const command : {"WAIT 1 0\r\n", "SET a 1\r\n"}) {
    run({"CLIENT", "PAUSE", "100000", "WRITE"});
    Remote& waiting = connect();
    waiting.send(command);
    serve();
    EXPECT_EQ(run({"CLIENT", "KILL", "ID", waiting.id_text()}), integer(1));
    EXPECT_EQ(waiting.replies(), "(end)") << command;
    run({"CLIENT", "UNPAUSE"});
  }
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

TEST_F(ConnectionWaitsTest, APausedClientThatGoesIsClosed) {
  run({"CLIENT", "PAUSE", "100000", "WRITE"});
  EXPECT_EQ(answer("SET a 1\r\n"), "");
  remote_.hang_up();
  EXPECT_TRUE(is_closed());
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

TEST_F(ConnectionWaitsTest, APauseThatIsMadeLongerHoldsLonger) {
  run({"CLIENT", "PAUSE", "20", "WRITE"});
  EXPECT_EQ(answer("SET a 1\r\n"), "");
  run({"CLIENT", "PAUSE", "100000", "WRITE"});
  advance_ms(21);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(40);
  serve_until([until] { return std::chrono::steady_clock::now() > until; });
  EXPECT_EQ(remote_.client().wait, ClientWait::kPaused);
  EXPECT_EQ(received(), "");
  run({"CLIENT", "UNPAUSE"});
  serve();
  EXPECT_EQ(received(), kOk);
}

TEST_F(ConnectionWaitsTest, LaterCommandsAreAnsweredAfterTheWait) {
  EXPECT_EQ(answer("WAIT 1 50\r\n"), "");
  EXPECT_EQ(answer("PING\r\nECHO x\r\n"), "");
  advance_ms(51);
  connection_->poll();
  serve();
  EXPECT_EQ(received(), ":0\r\n+PONG\r\n$1\r\nx\r\n");
}

// If a timer has already expired, setting it again does not stop Asio from running its old handler.
// This late handler must not close the client.
TEST_F(ConnectionWaitsTest, LateTimerOfAnEarlierWaitClosesNoClient) {
  run({"SET", "big", std::string(size_t{1} << 20, 'x')});
  std::string request = "WAIT 1 0\r\n";
  for (int i = 0; i < 40; ++i) request += "GET big\r\n";
  EXPECT_EQ(answer(request), "");
  ASSERT_NE(remote_.client().wait, ClientWait::kNone);
  support::let_time_pass(std::chrono::milliseconds(20), "the timer of WAIT expires");
  EXPECT_EQ(run({"CLIENT", "UNBLOCK", id()}), integer(1));
  // The posted function runs after the timer has expired, but before the timer's handler runs.
  thread_.loop.post([this] { connection_->poll(); });
  serve();
  EXPECT_EQ(remote_.client().wait, ClientWait::kNone);
  EXPECT_FALSE(is_closed());
  EXPECT_NE(received(), "");
}

TEST_F(ConnectionWaitsTest, OnlyAnIdleClientIsClosedByTheTimeout) {
  EXPECT_EQ(answer("WAIT 1 0\r\n"), "");
  connection_->on_tick(clock_.monotonic_us() + 10 * core::kSecondUs, core::kSecondUs, false);
  end_round();
  EXPECT_FALSE(is_closed()) << "it waits";
}

}  // namespace
}  // namespace server::net
