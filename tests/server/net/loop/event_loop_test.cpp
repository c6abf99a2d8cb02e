// SPDX-License-Identifier: MIT
#include "server/net/loop/event_loop.h"

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <functional>
#include <string>
#include <thread>

#include "tests/support/socket_pair.h"

namespace server::net {
namespace {

// A closed socket set, so that the io_context has no sockets to poll.
struct NoSockets : SocketSet {
  explicit NoSockets(asio::io_context& context) : SocketSet(context) {
    close();
    context.run();
    context.restart();
  }
};

TEST(EventLoop, ARoundEndsAfterEachThing) {
  asio::io_context context{1};
  NoSockets sockets(context);
  std::string seen;
  EventLoop loop(context, sockets, [&seen] { seen += '.'; });
  loop.post([&] {
    seen += 'a';
    loop.post([&seen] { seen += 'c'; });
  });
  loop.post([&seen] { seen += 'b'; });
  loop.run();
  EXPECT_EQ(seen, "a.b.c.");
}

TEST(EventLoop, RunsWhatOtherThreadsPost) {
  asio::io_context context{1};
  NoSockets sockets(context);
  auto work = asio::make_work_guard(context);
  constexpr int kPosts = 10'000;
  int count = 0;  // only the thread that runs the loop uses this variable
  EventLoop loop(context, sockets, [&] {
    if (count == 2 * kPosts) work.reset();
  });
  const auto post = [&] {
    for (int i = 0; i < kPosts; ++i) loop.post([&count] { ++count; });
  };
  std::thread first(post);
  std::thread second(post);
  loop.run();
  first.join();
  second.join();
  EXPECT_EQ(count, 2 * kPosts);
}

struct Watcher final : SocketSet::Watcher {
  void on_ready(uint32_t /*events*/) override { then(); }
  std::function<void()> then;
};

class EventLoopSocketsTest : public testing::Test {
 protected:
  EventLoopSocketsTest() {
    EXPECT_TRUE(sockets_.add(first_.near, one_, EPOLLIN));
    EXPECT_TRUE(sockets_.add(second_.near, two_, EPOLLIN));
  }

  asio::io_context context_{1};
  SocketSet sockets_{context_};
  std::string seen_;
  EventLoop loop_{context_, sockets_, [this] { seen_ += '.'; }};
  SocketPair first_;
  SocketPair second_;
  Watcher one_;
  Watcher two_;
};

TEST_F(EventLoopSocketsTest, SocketsReadyMeanwhileComeBeforePosts) {
  one_.then = [this] {
    seen_ += '1';
    sockets_.remove(first_.near, one_);
    loop_.post([this] {
      seen_ += 'p';
      sockets_.close();
    });
    second_.make_ready();
  };
  two_.then = [this] {
    seen_ += '2';
    sockets_.remove(second_.near, two_);
  };
  first_.make_ready();
  loop_.run();
  EXPECT_EQ(seen_.substr(0, 6), "1.2.p.");
}

TEST_F(EventLoopSocketsTest, SocketsThatAreAlwaysReadyHoldUpNoPost) {
  size_t reported = 0;
  one_.then = two_.then = [this, &reported] {
    if (reported++ > 0) return;
    loop_.post([this] { sockets_.close(); });
  };
  first_.make_ready();
  second_.make_ready();
  loop_.run();
  // Asio may have queued its next poll ahead of the posted function. In this case the function runs
  // only after that poll.
  constexpr size_t kOfAWait = 2 + EventLoop::kSocketsPerWait;
  EXPECT_GE(reported, kOfAWait);
  EXPECT_LE(reported, 2 * kOfAWait);
}

TEST_F(EventLoopSocketsTest, OneClientAloneIsNotAskedForAgain) {
  int reported = 0;
  one_.then = [this, &reported] {
    seen_ += '1';
    if (++reported == 2) loop_.post([this] { seen_ += 'p'; });
    if (reported == 2 + int{EventLoop::kSocketsPerWait} / 2) sockets_.close();
  };
  first_.make_ready();
  loop_.run();
  // One further poll may precede the posted function `p`, because Asio may already have queued that
  // poll.
  EXPECT_LE(seen_.find('p'), seen_.find("1.1.1.1.")) << seen_;
}

}  // namespace
}  // namespace server::net
