// SPDX-License-Identifier: MIT
#include "core/keyspace/window_schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace core::keyspace {
namespace {

// Returns the key whose check is due, or "" if no check is due.
std::string due(WindowSchedule& schedule, int64_t now_ms) {
  const auto name = schedule.take_due(now_ms);
  return name ? name->key : "";
}

TEST(WindowSchedule, RecordedNameIsDueImmediatelyAndOnce) {
  WindowSchedule schedule;
  EXPECT_TRUE(schedule.empty());
  schedule.record("a");
  schedule.record("a");
  EXPECT_FALSE(schedule.empty());
  EXPECT_EQ(due(schedule, 1000), "a");
  EXPECT_EQ(due(schedule, 1000), "");
  EXPECT_TRUE(schedule.empty());
}

TEST(WindowSchedule, NamesAreDueInTheOrderOfTheirTimes) {
  WindowSchedule schedule;
  schedule.put_back({"late", false}, 3000);
  schedule.put_back({"early", false}, 2000);
  EXPECT_EQ(due(schedule, 1999), "");
  EXPECT_EQ(due(schedule, 3000), "early");
  EXPECT_EQ(due(schedule, 3000), "late");
}

TEST(WindowSchedule, RecordingAgainReplacesALaterTime) {
  WindowSchedule schedule;
  schedule.put_back({"a", false}, 3000);
  schedule.record("a");
  EXPECT_EQ(due(schedule, 1), "a");
  // The key's name is recorded again after take_due() has removed it, and before put_back() is
  // called.
  schedule.record("a");
  schedule.put_back({"a", true}, 3000);
  const auto name = schedule.take_due(1);
  ASSERT_TRUE(name);
  EXPECT_FALSE(name->was_missing);
}

TEST(WindowSchedule, ClockJumpingBackMakesAllDue) {
  WindowSchedule schedule;
  schedule.put_back({"a", false}, 90'000);
  EXPECT_EQ(due(schedule, 80'000), "");
  EXPECT_EQ(due(schedule, 70'000), "a");
  schedule.put_back({"a", false}, 75'000);
  EXPECT_EQ(due(schedule, 71'000), "");
  EXPECT_EQ(due(schedule, 75'000), "a");
}

TEST(WindowSchedule, RecordsThatANameWasMissing) {
  WindowSchedule schedule;
  schedule.put_back({"a", true}, 10);
  const auto name = schedule.take_due(10);
  ASSERT_TRUE(name);
  EXPECT_TRUE(name->was_missing);
}

}  // namespace
}  // namespace core::keyspace
