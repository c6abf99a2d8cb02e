// SPDX-License-Identifier: MIT
#include "server/base/process/waker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace server {
namespace {

TEST(WakerTest, WakeEndsTheWaitOfAnotherThread) {
  Waker waker;
  std::jthread waking([&] { waker.wake(); });
  const auto begin = std::chrono::steady_clock::now();
  waker.wait(60'000);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(WakerTest, WakeBeforeTheWaitEndsIt) {
  Waker waker;
  waker.wake();
  const auto begin = std::chrono::steady_clock::now();
  waker.wait(60'000);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(WakerTest, WaitUsesUpEarlierWakes) {
  Waker waker;
  waker.wake();
  waker.wake();
  waker.wait(60'000);
  const auto begin = std::chrono::steady_clock::now();
  waker.wait(50);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(40));
}

TEST(WakerTest, DrainForgetsEarlierWakes) {
  Waker waker;
  waker.wake();
  waker.drain();
  const auto begin = std::chrono::steady_clock::now();
  waker.wait(50);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(40));
}

}  // namespace
}  // namespace server
