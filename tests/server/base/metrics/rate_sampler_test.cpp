// SPDX-License-Identifier: MIT
#include "server/base/metrics/rate_sampler.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(RateSampler, TellsWhatASecondBrings) {
  Statistics statistics(2, 1);
  Gauges gauges;
  RateSampler sampler(statistics, gauges);
  sampler.sample(1'000'000);
  EXPECT_EQ(gauges.operations_per_second, 0u);
  statistics.thread(0).commands_processed.add(30);
  statistics.thread(1).commands_processed.add(20);
  statistics.thread(1).input_bytes.add(1000);
  statistics.thread(0).output_bytes.add(500);
  sampler.sample(1'100'000);
  EXPECT_EQ(gauges.operations_per_second, 500u);
  EXPECT_EQ(gauges.input_bytes_per_second, 10'000u);
  EXPECT_EQ(gauges.output_bytes_per_second, 5000u);
  sampler.sample(1'200'000);
  EXPECT_EQ(gauges.operations_per_second, 0u);
}

TEST(RateSampler, AResetCountsNothing) {
  Statistics statistics(1, 1);
  Gauges gauges;
  RateSampler sampler(statistics, gauges);
  statistics.thread(0).commands_processed.add(50);
  sampler.sample(1'000'000);
  statistics.reset();
  sampler.sample(1'100'000);
  EXPECT_EQ(gauges.operations_per_second, 0u);
}

TEST(RateSampler, NoTimeIsNoRate) {
  Statistics statistics(1, 1);
  Gauges gauges;
  RateSampler sampler(statistics, gauges);
  sampler.sample(1'000'000);
  statistics.thread(0).commands_processed.add(50);
  sampler.sample(1'000'000);
  EXPECT_EQ(gauges.operations_per_second, 0u);
}

}  // namespace
}  // namespace server
