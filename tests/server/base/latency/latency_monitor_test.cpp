// SPDX-License-Identifier: MIT
#include "server/base/latency/latency_monitor.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(LatencyMonitorTest, OnlyEventsFromTheThresholdOnAreKept) {
  LatencyMonitor monitor;
  monitor.record("fork", 1000, 1);
  EXPECT_TRUE(monitor.events().empty()) << "it is off by default";
  monitor.set_threshold_ms(10);
  monitor.record("fork", 9, 1);
  monitor.record("fork", 10, 1);
  const auto events = monitor.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.at("fork").samples.size(), 1U);
  EXPECT_EQ(events.at("fork").longest_ms, 10);
}

TEST(LatencyMonitorTest, ASecondHasOneSampleTheSlowest) {
  LatencyMonitor monitor;
  monitor.set_threshold_ms(1);
  monitor.record("command", 5, 100);
  monitor.record("command", 20, 100);
  monitor.record("command", 7, 100);
  monitor.record("command", 3, 101);
  const auto events = monitor.events();
  const auto& samples = events.at("command").samples;
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].duration_ms, 20);
  EXPECT_EQ(samples[1].duration_ms, 3);
}

TEST(LatencyMonitorTest, AKindHasABoundedNumberOfSamples) {
  LatencyMonitor monitor;
  monitor.set_threshold_ms(1);
  for (int64_t i = 0; i < 1000; ++i) monitor.record("command", 1000 - i, i);
  const auto events = monitor.events();
  EXPECT_EQ(events.at("command").samples.size(), LatencyEvents::kSamplesMax);
  EXPECT_EQ(events.at("command").samples.back().time_s, 999);
  EXPECT_EQ(events.at("command").longest_ms, 1000);
}

TEST(LatencyMonitorTest, ResetForgetsOneKindOrAll) {
  LatencyMonitor monitor;
  monitor.set_threshold_ms(1);
  for (const char* kind : {"a", "b", "c"}) monitor.record(kind, 1, 1);
  EXPECT_EQ(monitor.reset("none"), 0U);
  EXPECT_EQ(monitor.reset("a"), 1U);
  EXPECT_EQ(monitor.reset_all(), 2U);
  EXPECT_TRUE(monitor.events().empty());
}

}  // namespace
}  // namespace server
