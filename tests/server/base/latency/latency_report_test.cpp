// SPDX-License-Identifier: MIT
#include "server/base/latency/latency_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LatencyEvents events_of(std::initializer_list<LatencySample> samples) {
  LatencyEvents events;
  events.samples = samples;
  events.longest_ms = 100;
  return events;
}

const std::string kLine = std::string(80, '-') + "\n";

TEST(LatencyGraphTest, ASampleIsAColumnWithItsAge) {
  EXPECT_EQ(
      latency_graph("command", events_of({{1000, 20}}), 1003),
      "command - high 20 ms, low 20 ms (all time high 100 ms)\n" + kLine + " \n \n \n_\n \n3\ns\n");
}

TEST(LatencyGraphTest, TheSlowestFillsAllRows) {
  EXPECT_EQ(latency_graph("fork", events_of({{1000, 0}, {1001, 50}, {1002, 100}}), 1075),
            "fork - high 100 ms, low 0 ms (all time high 100 ms)\n" + kLine +
                "  #\n"
                " _|\n"
                " ||\n"
                "_||\n"
                "   \n"
                "111\n"
                "mmm\n");
}

TEST(LatencyGraphTest, MoreSamplesThanColumnsAreTwoGraphs) {
  LatencyEvents events = events_of({});
  for (int64_t i = 0; i < 100; ++i) events.samples.push_back({i, i});
  const std::string text = latency_graph("command", events, 100'000);
  EXPECT_THAT(text, HasSubstr("\n" + std::string(80, '1') + "\n"));
  EXPECT_THAT(text, HasSubstr("\n\n"));
}

TEST(LatencyDiagnosisTest, TellsWhetherTheMonitorIsOff) {
  EXPECT_THAT(latency_diagnosis({}, {.threshold_ms = 0, .slowlog_slow_us = 0}),
              HasSubstr("monitoring is off"));
  EXPECT_THAT(latency_diagnosis({}, {.threshold_ms = 5, .slowlog_slow_us = 0}),
              HasSubstr("No latency event"));
}

TEST(LatencyDiagnosisTest, NamesEachKindAndWhatMayHelp) {
  LatencyMonitor::ByKind events;
  events.emplace("command", events_of({{1000, 10}, {1010, 30}}));
  events.emplace("fork", events_of({{1000, 40}}));
  const std::string text =
      latency_diagnosis(events, {.threshold_ms = 10, .slowlog_slow_us = 10'001});
  EXPECT_THAT(text, HasSubstr("1. command: 2 latency spikes (average 20ms, mean deviation 10ms, "
                              "period 10.00 sec). Worst all time event 100ms."));
  EXPECT_THAT(text, HasSubstr("2. fork: 1 latency spikes"));
  EXPECT_THAT(text, HasSubstr("CONFIG SET slowlog-log-slower-than 10000\n"));
  EXPECT_THAT(text, HasSubstr("huge pages"));
  EXPECT_THAT(latency_diagnosis(events, {.threshold_ms = 10, .slowlog_slow_us = 10'000}),
              Not(HasSubstr("CONFIG SET slowlog")));
}

}  // namespace
}  // namespace server
