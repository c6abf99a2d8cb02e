// SPDX-License-Identifier: MIT
#include "server/admin/heartbeat.h"

#include <gtest/gtest.h>

#include <vector>

namespace server::admin {
namespace {

TEST(HeartbeatTest, CountsFromTheFirstQuestionWithoutAnswer) {
  std::vector<std::function<void()>> asked;
  Heartbeat heartbeat([&](std::function<void()> answer) { asked.push_back(std::move(answer)); });
  EXPECT_EQ(heartbeat.silent_us(5), 0);
  heartbeat.tick(10);
  heartbeat.tick(20);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(heartbeat.silent_us(30), 20);
  asked[0]();
  EXPECT_EQ(heartbeat.silent_us(40), 0);
  heartbeat.tick(50);
  EXPECT_EQ(asked.size(), 2U);
}

TEST(HeartbeatTest, AnAnswerMayComeTooLate) {
  std::function<void()> late;
  {
    Heartbeat heartbeat([&](std::function<void()> answer) { late = std::move(answer); });
    heartbeat.tick(1);
  }
  late();
}

}  // namespace
}  // namespace server::admin
