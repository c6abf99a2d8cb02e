// SPDX-License-Identifier: MIT
#include "server/base/metrics/statistics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace server {
namespace {

TEST(StatisticsTest, TotalsAddUpTheThreads) {
  Statistics statistics(2, 3);
  statistics.thread(0).input_bytes.add(5);
  statistics.thread(1).input_bytes.add(7);
  statistics.stream().input_bytes.add(1);
  EXPECT_EQ(statistics.total(&ThreadStatistics::input_bytes), 13U);
  EXPECT_EQ(statistics.total(&ThreadStatistics::output_bytes), 0U);
  statistics.thread(0).commands[2].calls.add();
  statistics.thread(1).commands[2].calls.add(2);
  statistics.thread(1).commands[1].failed.add();
  EXPECT_EQ(statistics.total(2, &CommandCounters::calls), 3U);
  EXPECT_EQ(statistics.total(1, &CommandCounters::failed), 1U);
  EXPECT_EQ(statistics.total(0, &CommandCounters::calls), 0U);
}

TEST(StatisticsTest, ErrorsAreCountedByCode) {
  Statistics statistics(1, 1);
  statistics.count_error("ERR");
  statistics.count_error("ERR");
  statistics.count_error("OOM");
  EXPECT_EQ(statistics.errors(), (std::map<std::string, uint64_t>{{"ERR", 2}, {"OOM", 1}}));
  EXPECT_EQ(statistics.total_errors(), 3U);
}

// Error codes can come from clients' input, so their number is bounded.
TEST(StatisticsTest, TheNumberOfCodesIsBounded) {
  Statistics statistics(1, 1);
  for (int i = 0; i < 1000; ++i) statistics.count_error("E" + std::to_string(i));
  EXPECT_EQ(statistics.errors().size(), 128U);
  EXPECT_EQ(statistics.total_errors(), 1000U);
  statistics.count_error("E0");
  EXPECT_EQ(statistics.errors().at("E0"), 2U);
}

TEST(StatisticsTest, ResetForgetsAll) {
  Statistics statistics(1, 1);
  ThreadStatistics& thread = statistics.thread(0);
  for (Counter* counter : {&thread.commands_processed, &thread.keyspace_hits, &thread.input_bytes,
                           &thread.output_buffer_disconnections}) {
    counter->add();
  }
  thread.commands[0].calls.add();
  thread.commands[0].ticks.add();
  thread.commands[0].rejected.add();
  thread.commands[0].failed.add();
  statistics.count_error("ERR");
  statistics.reset();
  EXPECT_EQ(statistics.total(&ThreadStatistics::commands_processed), 0U);
  EXPECT_EQ(statistics.total(&ThreadStatistics::keyspace_hits), 0U);
  EXPECT_EQ(statistics.total(&ThreadStatistics::input_bytes), 0U);
  EXPECT_EQ(statistics.total(&ThreadStatistics::output_buffer_disconnections), 0U);
  for (Counter CommandCounters::*counter : {&CommandCounters::calls, &CommandCounters::ticks,
                                            &CommandCounters::rejected, &CommandCounters::failed}) {
    EXPECT_EQ(statistics.total(0, counter), 0U);
  }
  EXPECT_TRUE(statistics.errors().empty());
  EXPECT_EQ(statistics.total_errors(), 0U);
}

}  // namespace
}  // namespace server
