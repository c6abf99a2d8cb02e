// SPDX-License-Identifier: MIT
#include "server/page_collapser.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/captured_log.h"
#include "tests/support/manual_clock.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

using Pause = PageCollapser::Pause;
using Step = PageCollapser::Step;

// Tests a collapser whose steps collapse no memory. Each step returns the value that the test has
// chosen, and takes `clock_.step_us` of simulated time.
class PageCollapserTest : public testing::Test {
 protected:
  // Ends the thread immediately, so that only the test calls tick().
  void SetUp() override {
    collapser_.set_enabled(true);
    collapser_.stop();
    steps_ = 0;
  }
  Pause pause_after(Step step) {
    next_ = step;
    return collapser_.tick();
  }

  ManualClock clock_;
  std::atomic<int> steps_{0};
  std::atomic<Step> next_{Step::kPassEnded};
  PageCollapser collapser_{clock_, [this] {
                             ++steps_;
                             return next_.load();
                           }};
};

TEST_F(PageCollapserTest, PausesNineTimesAsLongAsAPieceTook) {
  EXPECT_EQ(pause_after(Step::kCollapsed), Pause(1));
  clock_.step_us = 1'000;
  EXPECT_EQ(pause_after(Step::kCollapsed), Pause(10));
  clock_.step_us = 4'000;
  EXPECT_EQ(pause_after(Step::kContinues), Pause(37));
  clock_.step_us = 60'000;
  EXPECT_EQ(pause_after(Step::kCollapsed), PageCollapser::kPiecePauseMax);
}

TEST_F(PageCollapserTest, IdlePassesBecomeRarer) {
  pause_after(Step::kCollapsed);
  EXPECT_EQ(pause_after(Step::kPassEnded), PageCollapser::kPassPauseMin);
  EXPECT_EQ(pause_after(Step::kPassEnded), 2 * PageCollapser::kPassPauseMin);
  for (int i = 0; i < 5; ++i) pause_after(Step::kPassEnded);
  EXPECT_EQ(pause_after(Step::kPassEnded), PageCollapser::kPassPauseMax);
  pause_after(Step::kCollapsed);
  EXPECT_EQ(pause_after(Step::kPassEnded), PageCollapser::kPassPauseMin);
}

TEST_F(PageCollapserTest, FailuresBackOff) {
  pause_after(Step::kCollapsed);
  EXPECT_EQ(pause_after(Step::kFailed), PageCollapser::kRetryPauseMin);
  EXPECT_EQ(pause_after(Step::kFailed), 2 * PageCollapser::kRetryPauseMin);
  for (int i = 0; i < 9; ++i) pause_after(Step::kFailed);
  EXPECT_EQ(pause_after(Step::kFailed), PageCollapser::kRetryPauseMax);
  pause_after(Step::kCollapsed);
  EXPECT_EQ(pause_after(Step::kFailed), PageCollapser::kRetryPauseMin);
}

TEST_F(PageCollapserTest, MissingCallIsLoggedOnce) {
  CapturedLog log;
  EXPECT_EQ(pause_after(Step::kUnsupported), PageCollapser::kIdlePause);
  EXPECT_EQ(pause_after(Step::kUnsupported), PageCollapser::kIdlePause);
  EXPECT_EQ(steps_, 1);
  EXPECT_EQ(log.count("MADV_COLLAPSE"), 1U);
}

TEST_F(PageCollapserTest, NoStopsFurtherSteps) {
  collapser_.set_enabled(false);
  EXPECT_EQ(pause_after(Step::kCollapsed), PageCollapser::kIdlePause);
  EXPECT_EQ(steps_, 0);
}

TEST(PageCollapserThreadTest, RunsOnlyWhileEnabled) {
  const core::SystemClock clock;
  std::atomic<int> steps{0};
  PageCollapser collapser(clock, [&] {
    ++steps;
    return Step::kCollapsed;
  });
  collapser.set_enabled(false);
  EXPECT_EQ(steps, 0);
  const auto more_steps = [&] {
    const int before = steps;
    return support::wait_until([&] { return steps > before + 2; });
  };
  collapser.set_enabled(true);
  EXPECT_TRUE(more_steps());
  collapser.set_enabled(false);
  collapser.set_enabled(true);
  EXPECT_TRUE(more_steps());
  collapser.stop();
}

}  // namespace
}  // namespace server
