// SPDX-License-Identifier: MIT
#include "server/admin/history/latency_tally.h"

#include <gtest/gtest.h>

#include "server/base/metrics/statistics.h"

namespace server::admin {
namespace {

TEST(LatencyTallyTest, CountsEachCallOnceOnAllThreads) {
  Statistics statistics(2, 1);
  LatencyTally tally;
  statistics.thread(0).commands[0].add_latency(100);
  statistics.thread(1).commands[0].add_latency(10'000);
  LatencyCounts first;
  tally.update(statistics, 0, first);
  EXPECT_EQ(first.total(), 2U);
  LatencyCounts second;
  tally.update(statistics, 0, second);
  EXPECT_EQ(second.total(), 0U);
  EXPECT_NEAR(tally.finish_interval(99), 10'000, 1000);
  EXPECT_EQ(tally.finish_interval(99), 0);
}

TEST(LatencyTallyTest, CountsAfterAResetAreNew) {
  Statistics statistics(1, 1);
  LatencyTally tally;
  LatencyCounts all;
  for (int i = 0; i < 5; ++i) statistics.thread(0).commands[0].add_latency(100);
  tally.update(statistics, 0, all);
  statistics.reset();
  for (int i = 0; i < 2; ++i) statistics.thread(0).commands[0].add_latency(100);
  tally.update(statistics, 0, all);
  EXPECT_EQ(all.total(), 7U);
}

}  // namespace
}  // namespace server::admin
