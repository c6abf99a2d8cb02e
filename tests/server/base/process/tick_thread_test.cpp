// SPDX-License-Identifier: MIT
#include "server/base/process/tick_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "tests/support/waiting.h"

namespace server {
namespace {

constexpr std::chrono::milliseconds kLong{3'600'000};

void await(const std::atomic<int>& ticks, int wanted) {
  EXPECT_TRUE(support::wait_until([&] { return ticks >= wanted; }));
}

TEST(TickThreadTest, TicksWhenWokenAndNotBefore) {
  TickThread thread;
  std::atomic<int> ticks{0};
  EXPECT_FALSE(thread.is_running());
  thread.start([&] {
    ++ticks;
    return kLong;
  });
  EXPECT_TRUE(thread.is_running());
  await(ticks, 1);
  thread.wake();
  await(ticks, 2);
  thread.stop();
  EXPECT_FALSE(thread.is_running());
  EXPECT_EQ(ticks, 2);
}

TEST(TickThreadTest, AWakeDuringATickIsNotLost) {
  TickThread thread;
  std::atomic<int> ticks{0};
  thread.start([&] {
    if (++ticks == 1) thread.wake();
    return kLong;
  });
  await(ticks, 2);
  thread.stop();
  EXPECT_EQ(ticks, 2);
}

TEST(TickThreadTest, StartsAgainAfterAStop) {
  TickThread thread;
  std::atomic<int> ticks{0};
  for (int wanted = 1; wanted <= 2; ++wanted) {
    thread.start([&] {
      ++ticks;
      return kLong;
    });
    await(ticks, wanted);
    thread.stop();
    EXPECT_EQ(ticks, wanted);
  }
}

TEST(TickThreadTest, StopsWithoutHavingBeenStarted) {
  TickThread thread;
  thread.stop();
  EXPECT_FALSE(thread.is_running());
}

}  // namespace
}  // namespace server
