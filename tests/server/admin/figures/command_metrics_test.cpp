// SPDX-License-Identifier: MIT
#include "server/admin/figures/command_metrics.h"

#include <algorithm>

#include "tests/support/command_test.h"

namespace server::admin {
namespace {

class CommandMetricsTest : public CommandTest {
 protected:
  const prometheus::ClientMetric* find(const Families& families, const std::string& family,
                                       const std::string& command) {
    for (const auto& candidate : families) {
      if (candidate.name != family) continue;
      for (const auto& metric : candidate.metric) {
        if (metric.label.at(0).value == command) return &metric;
      }
    }
    return nullptr;
  }
};

TEST_F(CommandMetricsTest, CountsCallsRefusalsAndFailures) {
  run({"SET", "a", "1"});
  run({"GET", "a"});
  run({"GET", "a"});
  run({"GET"});
  run({"BF.ADD", "a", "x"});
  const Families families = command_families(services_);
  EXPECT_EQ(find(families, "redis_commands_total", "get")->counter.value, 2);
  EXPECT_EQ(find(families, "redis_commands_rejected_calls_total", "get")->counter.value, 1);
  EXPECT_EQ(find(families, "redis_commands_failed_calls_total", "bf.add")->counter.value, 1);
  EXPECT_EQ(find(families, "redis_commands_total", "mget"), nullptr);
}

TEST_F(CommandMetricsTest, HistogramsNeverFall) {
  for (int i = 0; i < 100; ++i) run({"GET", "a"});
  const Families families = command_families(services_);
  const auto* metric = find(families, "redis_commands_latencies_usec", "get");
  ASSERT_NE(metric, nullptr);
  EXPECT_EQ(metric->histogram.sample_count, 100U);
  ASSERT_EQ(metric->histogram.bucket.size(), kLatencyBoundsUs.size());
  EXPECT_TRUE(std::ranges::is_sorted(metric->histogram.bucket, {},
                                     &prometheus::ClientMetric::Bucket::cumulative_count));
  const auto* summary = find(families, "redis_latency_percentiles_usec", "get");
  ASSERT_NE(summary, nullptr);
  EXPECT_EQ(summary->summary.quantile.size(), 3U);
}

TEST_F(CommandMetricsTest, NoPercentilesWithoutLatencyTracking) {
  EXPECT_EQ(run({"CONFIG", "SET", "latency-tracking", "no"}), kOk);
  run({"CONFIG", "RESETSTAT"});
  run({"GET", "a"});
  EXPECT_EQ(find(command_families(services_), "redis_commands_latencies_usec", "get"), nullptr);
}

}  // namespace
}  // namespace server::admin
