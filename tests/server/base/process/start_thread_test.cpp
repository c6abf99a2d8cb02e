// SPDX-License-Identifier: MIT
#include "server/base/process/start_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <future>
#include <string>
#include <thread>

#include "server/base/process/allocator.h"

namespace server {
namespace {

TEST(StartThreadTest, ThreadRunsWithItsName) {
  std::promise<void> named;
  std::promise<std::string> seen;
  std::thread thread = start_thread("of-the-test", [&] {
    named.get_future().wait();
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    seen.set_value(name.data());
  });
  named.set_value();
  EXPECT_EQ(seen.get_future().get(), "of-the-test");
  thread.join();
}

TEST(StartThreadTest, CountsWhatTheThreadTakes) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::array<std::thread, 8> threads;
  for (std::thread& thread : threads) {
    std::promise<void> started;
    thread = start_thread("of-the-test", [&] {
      started.set_value();
      ended.wait();
    });
    started.get_future().wait();
  }
  const auto before = static_cast<double>(heap_bytes());
  correct_heap_bytes();
  EXPECT_NEAR(static_cast<double>(heap_bytes()), before, 4096);
  end.set_value();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace server
