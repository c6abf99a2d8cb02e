// SPDX-License-Identifier: MIT
#include "server/process/supervision/supervisor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace server {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

class SupervisorTest : public ::testing::Test {
 protected:
  Supervisor make(bool listens, uint64_t watchdog_us) {
    return {listens, watchdog_us, [this](const std::string& lines) { sent_.push_back(lines); }};
  }
  std::vector<std::string> sent_;
};

TEST_F(SupervisorTest, NothingIsSentWhereNobodyListens) {
  Supervisor supervisor = make(false, kSecondUs);
  supervisor.tick(100 * kSecondUs, 0.5);
  supervisor.ready("x");
  supervisor.stopping();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SupervisorTest, ReadyAndStoppingAreToldOnce) {
  Supervisor supervisor = make(true, 0);
  supervisor.ready("Ready to accept connections");
  supervisor.ready("again");
  supervisor.stopping();
  supervisor.stopping();
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0], "READY=1\nSTATUS=Ready to accept connections");
  EXPECT_TRUE(sent_[1].starts_with("STOPPING=1\n"));
}

TEST_F(SupervisorTest, AServerThatEndsIsNotReadyAnyMore) {
  Supervisor supervisor = make(true, 0);
  supervisor.stopping();
  supervisor.ready("x");
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(SupervisorTest, LoadingMovesTheTimeLimitEachSecond) {
  Supervisor supervisor = make(true, 0);
  for (int64_t tenth = 10; tenth < 40; ++tenth) supervisor.tick(tenth * kSecondUs / 10, 0.421);
  ASSERT_EQ(sent_.size(), 3U);
  EXPECT_EQ(sent_[0], "STATUS=Loading data: 42 %\nEXTEND_TIMEOUT_USEC=30000000");
  supervisor.ready("x");
  supervisor.tick(100 * kSecondUs, 0.9);
  EXPECT_EQ(sent_.size(), 4U);
}

TEST_F(SupervisorTest, TheWatchdogHearsTwiceInItsInterval) {
  Supervisor supervisor = make(true, 4 * kSecondUs);
  for (int64_t tenth = 100; tenth < 200; ++tenth) supervisor.tick(tenth * kSecondUs / 10, -1);
  EXPECT_EQ(sent_, std::vector<std::string>(5, "WATCHDOG=1"));
}

}  // namespace
}  // namespace server
