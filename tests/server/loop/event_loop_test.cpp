// SPDX-License-Identifier: MIT
#include "server/loop/event_loop.h"

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <string>
#include <thread>

namespace server::net {
namespace {

TEST(EventLoop, ARoundEndsAfterEachThing) {
  asio::io_context context{1};
  std::string seen;
  EventLoop loop(context, [&seen] { seen += '.'; });
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
  auto work = asio::make_work_guard(context);
  constexpr int kPosts = 10'000;
  int count = 0;  // of the loop's thread
  EventLoop loop(context, [&] {
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

}  // namespace
}  // namespace server::net
