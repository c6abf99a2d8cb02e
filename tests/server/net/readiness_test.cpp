// SPDX-License-Identifier: MIT
#include "server/net/readiness.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <thread>

#include "server/net/io_threads.h"
#include "tests/support/socket_pair.h"

namespace server::net {
namespace {

constexpr int kLongMs = 10'000;

struct Counter final : Readiness::Watcher {
  void on_ready(uint32_t events) override {
    ++calls;
    last_events = events;
    if (then) then();
  }
  int calls = 0;
  uint32_t last_events = 0;
  std::function<void()> then;
};

class ReadinessTest : public testing::Test {
 protected:
  size_t deliver(int wait_ms) {
    readiness_.wait(wait_ms);
    return readiness_.deliver();
  }

  asio::io_context context_{1};
  asio::executor_work_guard<Executor> work_{context_.get_executor()};
  Readiness readiness_{context_};
  SocketPair first_;
  SocketPair second_;
  Counter one_;
  Counter two_;
};

TEST_F(ReadinessTest, CallsTheWatchersOfWhatIsReady) {
  ASSERT_TRUE(readiness_.add(first_.near, one_, EPOLLIN));
  ASSERT_TRUE(readiness_.add(second_.near, two_, EPOLLIN));
  EXPECT_EQ(deliver(0), 0u);
  second_.make_ready();
  EXPECT_EQ(deliver(kLongMs), 1u);
  EXPECT_EQ(one_.calls, 0);
  EXPECT_EQ(two_.calls, 1);
  EXPECT_EQ(two_.last_events, uint32_t{EPOLLIN});
  // Level-triggered: it was not read.
  EXPECT_EQ(deliver(kLongMs), 1u);
  readiness_.change(second_.near, two_, 0);
  EXPECT_EQ(deliver(0), 0u);
}

TEST_F(ReadinessTest, AWatcherRemovedInTheSameRoundIsNotCalled) {
  ASSERT_TRUE(readiness_.add(first_.near, one_, EPOLLIN));
  ASSERT_TRUE(readiness_.add(second_.near, two_, EPOLLIN));
  one_.then = [this] { readiness_.remove(second_.near, two_); };
  two_.then = [this] { readiness_.remove(first_.near, one_); };
  first_.make_ready();
  second_.make_ready();
  EXPECT_EQ(deliver(kLongMs), 1u);
  EXPECT_EQ(one_.calls + two_.calls, 1);
}

TEST_F(ReadinessTest, WakingEndsTheWaitOrTheNext) {
  readiness_.wake();
  EXPECT_EQ(deliver(kLongMs), 0u);
  // Edge-triggered, so the same wake-up does not end another.
  EXPECT_EQ(deliver(0), 0u);
  std::thread waker([this] { readiness_.wake(); });
  EXPECT_EQ(deliver(kLongMs), 0u);
  waker.join();
}

TEST_F(ReadinessTest, AsioReturnsWhenSomethingIsReady) {
  ASSERT_TRUE(readiness_.add(first_.near, one_, EPOLLIN));
  for (int round = 0; round < 3; ++round) {
    readiness_.arm();
    readiness_.arm();  // has no effect
    first_.make_ready();
    EXPECT_EQ(context_.run_one_for(std::chrono::milliseconds(kLongMs)), 1u);
    EXPECT_EQ(deliver(0), 1u);
    char byte = 0;
    ASSERT_EQ(::read(first_.near, &byte, 1), 1);
  }
}

TEST_F(ReadinessTest, ClosedItDeliversNothing) {
  ASSERT_TRUE(readiness_.add(first_.near, one_, EPOLLIN));
  first_.make_ready();
  readiness_.close();
  readiness_.arm();
  EXPECT_EQ(deliver(kLongMs), 0u);
}

// Whether the thread lingers in its set or sleeps in Asio, a post must reach it.
TEST(IoThreads, PostsReachThreadsThatLingerAndThreadsThatSleep) {
  IoThreads threads(2);
  std::thread runner([&threads] { threads.run(); });
  const auto run_on = [&threads](size_t index) {
    std::promise<void> done;
    threads.at(index).post([&done] { done.set_value(); });
    return done.get_future().wait_for(std::chrono::milliseconds(kLongMs)) ==
           std::future_status::ready;
  };
  for (int round = 0; round < 2000; ++round) {
    ASSERT_TRUE(run_on(round % 2));
    // Beyond the linger time now and then.
    if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
  threads.stop();
  runner.join();
}

}  // namespace
}  // namespace server::net
