// SPDX-License-Identifier: MIT
#include "server/net/periodic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "server/session/clients.h"
#include "server/session/session.h"
#include "tests/support/clients_fixture.h"

namespace server::net {
namespace {

using std::chrono::steady_clock;

// Tests the periodic task with real time, so each test takes as long as its ticks.
class PeriodicTest : public CommandTest {
 protected:
  static constexpr int64_t kHz = 100;

  PeriodicTest() {
    EXPECT_EQ(run({"CONFIG", "SET", "hz", std::to_string(kHz)}), kOk);
    threads_of_test_.at(0).loop.post([this] { periodic_.start(); });
  }
  ~PeriodicTest() override { end(); }

  void end() {
    if (!runner_.joinable()) return;
    threads_of_test_.at(0).loop.post([this] { periodic_.stop(); });
    threads_of_test_.stop();
    runner_.join();
  }
  void await_ticks(int count) {
    const int wanted = ticks_ + count;
    const auto deadline = steady_clock::now() + std::chrono::seconds(30);
    while (ticks_ < wanted && steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_GE(ticks_, wanted);
  }
  // Creates a client of thread 0. The client's socket pair lives as long as the test.
  std::shared_ptr<Client> connect() {
    auto session = std::make_unique<Session>(clients_.next_id());
    session->authenticated = true;
    const std::shared_ptr<Client> client = session->client;
    client->socket.descriptor = std::exchange(sockets_.near, -1);
    client->last_interaction_us = clock_.monotonic_us();
    clients_.add(client);
    std::promise<void> done;
    threads_of_test_.at(0).loop.post([&] {
      const auto made =
          std::make_shared<Connection>(threads_of_test_.at(0), services_, std::move(session));
      threads_of_test_.at(0).connections.add(client->id, made);
      made->start();
      done.set_value();
    });
    done.get_future().wait();
    return client;
  }
  size_t connections() { return threads_of_test_.at(0).connections.count(); }

  FakeReplyLog log_;
  IoThreads threads_of_test_{1, log_};
  std::atomic<int> ticks_{0};
  Periodic periodic_{threads_of_test_, config_, clock_, [this] { ++ticks_; }};
  SocketPair sockets_;
  std::thread runner_{[this] { threads_of_test_.run(); }};
};

TEST_F(PeriodicTest, TheTaskRunsAsOftenAsHzSays) {
  const auto start = steady_clock::now();
  await_ticks(50);
  EXPECT_GE(steady_clock::now() - start, std::chrono::milliseconds(450));
}

TEST_F(PeriodicTest, AStoppedOneLetsTheLoopEnd) {
  await_ticks(3);
  end();
  EXPECT_FALSE(runner_.joinable());
}

TEST_F(PeriodicTest, AnotherHzHoldsFromTheNextTick) {
  await_ticks(1);
  EXPECT_EQ(run({"CONFIG", "SET", "hz", "500"}), kOk);
  const auto start = steady_clock::now();
  await_ticks(101);
  // At 500 ticks a second, 101 ticks take about 200 ms, and longer on a busy machine.
  EXPECT_GE(steady_clock::now() - start, std::chrono::milliseconds(190));
}

TEST_F(PeriodicTest, OnceASecondIdleClientsAreClosed) {
  ASSERT_EQ(run({"CONFIG", "SET", "timeout", "1"}), kOk);
  const auto client = connect();
  EXPECT_EQ(connections(), 1U);
  advance_ms(1001);
  await_ticks(kHz + 1);
  await_ticks(2);
  EXPECT_EQ(connections(), 0U);
}

TEST_F(PeriodicTest, StepOfTheWallClockClosesNoClient) {
  ASSERT_EQ(run({"CONFIG", "SET", "timeout", "60"}), kOk);
  const auto client = connect();
  clock_.wall_step_ms = int64_t{86'400'000};
  await_ticks(kHz + 3);
  EXPECT_EQ(connections(), 1U);
}

TEST_F(PeriodicTest, ClosesNoClientWithoutATimeout) {
  const auto client = connect();
  advance_ms(1'000'000);
  await_ticks(kHz + 3);
  EXPECT_EQ(connections(), 1U);
}

}  // namespace
}  // namespace server::net
