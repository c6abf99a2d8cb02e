// SPDX-License-Identifier: MIT
#include "server/process/threads/start_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <future>
#include <string>
#include <thread>

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

}  // namespace
}  // namespace server
