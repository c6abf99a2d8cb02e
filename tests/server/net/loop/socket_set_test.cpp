// SPDX-License-Identifier: MIT
#include "server/net/loop/socket_set.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "tests/support/socket_pair.h"

namespace server::net {
namespace {

constexpr std::chrono::seconds kLong{10};

struct Counter final : SocketSet::Watcher {
  void on_ready(uint32_t events) override {
    ++calls;
    last_events = events;
    if (then) then();
  }
  int calls = 0;
  uint32_t last_events = 0;
  std::function<void()> then;
};

class SocketSetTest : public testing::Test {
 protected:
  // Waits up to `time` for an event of the socket set, and handles it. Returns false if there is
  // none.
  bool look(std::chrono::milliseconds time) { return context_.run_one_for(time) > 0; }

  asio::io_context context_{1};
  SocketSet sockets_{context_};
  SocketPair first_;
  SocketPair second_;
  Counter one_;
  Counter two_;
};

TEST_F(SocketSetTest, CallsTheWatchersOfWhatIsReady) {
  ASSERT_TRUE(sockets_.add(first_.near, one_, EPOLLIN));
  ASSERT_TRUE(sockets_.add(second_.near, two_, EPOLLIN));
  EXPECT_FALSE(look(std::chrono::milliseconds(1)));
  second_.make_ready();
  ASSERT_TRUE(look(kLong));
  EXPECT_EQ(one_.calls, 0);
  EXPECT_EQ(two_.calls, 1);
  EXPECT_EQ(two_.last_events, uint32_t{EPOLLIN});
}

TEST_F(SocketSetTest, UnreadSocketIsReportedAgain) {
  ASSERT_TRUE(sockets_.add(first_.near, one_, EPOLLIN));
  first_.make_ready();
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(look(kLong));
    EXPECT_EQ(one_.calls, round);
  }
  sockets_.change(first_.near, one_, 0);
  // An event that the kernel reported before change() may still be delivered once.
  (void)look(std::chrono::milliseconds(1));
  EXPECT_FALSE(look(std::chrono::milliseconds(1)));
  EXPECT_EQ(one_.calls, 3);
}

TEST_F(SocketSetTest, ReadSocketIsReportedWhenMoreArrives) {
  ASSERT_TRUE(sockets_.add(first_.near, one_, EPOLLIN));
  one_.then = [this] {
    char byte = 0;
    ASSERT_EQ(::read(first_.near, &byte, 1), 1);
  };
  for (int round = 1; round <= 3; ++round) {
    first_.make_ready();
    while (one_.calls < round) ASSERT_TRUE(look(kLong));
    EXPECT_EQ(one_.calls, round);
  }
}

TEST_F(SocketSetTest, AWatcherRemovedInTheSameRoundIsNotCalled) {
  ASSERT_TRUE(sockets_.add(first_.near, one_, EPOLLIN));
  ASSERT_TRUE(sockets_.add(second_.near, two_, EPOLLIN));
  one_.then = [this] { sockets_.remove(second_.near, two_); };
  two_.then = [this] { sockets_.remove(first_.near, one_); };
  first_.make_ready();
  second_.make_ready();
  ASSERT_TRUE(look(kLong));
  EXPECT_EQ(one_.calls + two_.calls, 1);
}

TEST_F(SocketSetTest, ClosedSetCallsNoWatcherAndEndsTheLoop) {
  ASSERT_TRUE(sockets_.add(first_.near, one_, EPOLLIN));
  first_.make_ready();
  sockets_.close();
  sockets_.remove(first_.near, one_);
  EXPECT_LE(context_.run_for(kLong), 1u);
  EXPECT_TRUE(context_.stopped());
  EXPECT_EQ(one_.calls, 0);
}

TEST_F(SocketSetTest, AWatcherMayCloseTheSet) {
  ASSERT_TRUE(sockets_.add(first_.near, one_, EPOLLIN));
  ASSERT_TRUE(sockets_.add(second_.near, two_, EPOLLIN));
  one_.then = two_.then = [this] { sockets_.close(); };
  first_.make_ready();
  second_.make_ready();
  context_.run_for(kLong);
  EXPECT_TRUE(context_.stopped());
  EXPECT_EQ(one_.calls + two_.calls, 1);
}

TEST_F(SocketSetTest, RefusesWhatIsNoSocket) {
  EXPECT_FALSE(sockets_.add(-1, one_, EPOLLIN));
}

}  // namespace
}  // namespace server::net
