// SPDX-License-Identifier: MIT
#include "server/base/latency/latency_histogram.h"

#include <gtest/gtest.h>

#include <random>

namespace server {
namespace {

TEST(LatencyHistogramTest, BucketsFollowEachOtherWithoutGaps) {
  for (size_t i = 0; i + 1 < LatencyHistogram::kBucketCount; ++i) {
    const uint64_t end = LatencyHistogram::end_of(i);
    ASSERT_EQ(LatencyHistogram::bucket_of(end - 1), i);
    ASSERT_EQ(LatencyHistogram::bucket_of(end), i + 1);
  }
  EXPECT_EQ(LatencyHistogram::bucket_of(0), 0U);
  EXPECT_EQ(LatencyHistogram::bucket_of(~uint64_t{0}), LatencyHistogram::kBucketCount - 1);
}

TEST(LatencyHistogramTest, ABucketIsNarrow) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t ticks = random() >> (1 + random() % 62);
    const uint64_t end = LatencyHistogram::end_of(LatencyHistogram::bucket_of(ticks));
    ASSERT_GT(end, ticks);
    ASSERT_LE(end - ticks, std::max<uint64_t>(1, ticks / 16 + 1));
  }
}

TEST(LatencyHistogramTest, PercentilesAreWithinABucket) {
  LatencyHistogram histogram;
  for (uint64_t i = 1; i <= 1000; ++i) histogram.add(i * 1000);
  LatencyCounts counts;
  counts.add(histogram);
  EXPECT_EQ(counts.total(), 1000U);
  for (const double percentage : {1.0, 10.0, 50.0, 99.0, 99.9, 100.0}) {
    EXPECT_NEAR(counts.percentile(percentage), percentage * 10'000, percentage * 10'000 / 16 + 16);
  }
  EXPECT_GT(counts.percentile(0), 0);
  EXPECT_NEAR(static_cast<double>(counts.count_up_to(500'000)), 500, 10);
  EXPECT_EQ(counts.count_up_to(0), 0U);
  EXPECT_EQ(counts.count_up_to(1e12), 1000U);
}

TEST(LatencyHistogramTest, SeveralThreadsAreAddedUp) {
  LatencyHistogram one;
  LatencyHistogram other;
  one.add(5);
  other.add(5);
  other.add(7);
  LatencyCounts counts;
  for (const LatencyHistogram* histogram : {&one, &other}) counts.add(*histogram);
  EXPECT_EQ(counts.total(), 3U);
  EXPECT_EQ(counts.count_up_to(6), 2U);
  other.reset();
  EXPECT_EQ(other.count(5), 0U);
}

TEST(LatencyHistogramTest, WithoutTimesThereIsNothing) {
  const LatencyCounts counts;
  EXPECT_EQ(counts.total(), 0U);
  EXPECT_EQ(counts.count_up_to(1e9), 0U);
}

}  // namespace
}  // namespace server
