// SPDX-License-Identifier: MIT
#include "server/net/loop/loop_waker.h"

#include <gtest/gtest.h>

namespace server::net {
namespace {

class LoopWakerTest : public testing::Test {
 protected:
  LoopWakerTest() { sockets_.close(); }
  int runs() {
    context_.restart();
    loop_.run();
    return runs_;
  }

  asio::io_context context_{1};
  SocketSet sockets_{context_};
  EventLoop loop_{context_, sockets_, [] {}};
  int runs_ = 0;
  LoopWaker waker_{loop_, [this] { ++runs_; }};
};

TEST_F(LoopWakerTest, DoesNothingWithoutWaiter) {
  waker_.wake();
  EXPECT_EQ(runs(), 0);
  waker_.arm();
  waker_.disarm();
  waker_.wake();
  EXPECT_EQ(runs(), 0);
}

TEST_F(LoopWakerTest, ManyCallsAreOneTask) {
  waker_.arm();
  for (int i = 0; i < 10; ++i) waker_.wake();
  EXPECT_EQ(runs(), 1);
  waker_.wake();
  EXPECT_EQ(runs(), 1);
  waker_.arm();
  waker_.wake();
  EXPECT_EQ(runs(), 2);
}

}  // namespace
}  // namespace server::net
