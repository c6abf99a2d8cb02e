// SPDX-License-Identifier: MIT
#include "server/admin/history/history_sampler.h"

#include <gtest/gtest.h>

#include "server/base/metrics/statistics.h"
#include "server/dispatch/registry.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

class HistorySamplerTest : public CommandTest {
 protected:
  void sample_after_s(int64_t seconds = 1) {
    advance_ms(1000 * seconds);
    sampler_.sample();
  }
  const Moment& newest() const {
    return sampler_.history().moments()[sampler_.history().moments().size() - 1];
  }
  size_t index_of(std::string_view name) const { return registry_->find_by_full_name(name)->index; }

  HistorySampler sampler_{services_};
};

TEST_F(HistorySamplerTest, TheFirstSampleIsNoFigure) {
  run({"SET", "a", "1"});
  sample_after_s();
  EXPECT_EQ(sampler_.history().moments().size(), 0U);
}

TEST_F(HistorySamplerTest, RatesAreOfTheTimeThatHasPassed) {
  sample_after_s();
  for (int i = 0; i < 40; ++i) run({"GET", "a"});
  sample_after_s(4);
  EXPECT_FLOAT_EQ(newest()[Figure::kOperations], 10);
  EXPECT_GT(newest()[Figure::kMedian], 0);
  EXPECT_GE(newest()[Figure::kPercentile999], newest()[Figure::kMedian]);
  EXPECT_GT(newest()[Figure::kUsedMemory], 0);
  sample_after_s();
  EXPECT_EQ(newest()[Figure::kOperations], 0);
  EXPECT_EQ(newest()[Figure::kMedian], 0);
}

TEST_F(HistorySamplerTest, ResetCountersAreNoNegativeRates) {
  for (int i = 0; i < 40; ++i) run({"GET", "a"});
  sample_after_s();
  run({"CONFIG", "RESETSTAT"});
  run({"GET", "a"});
  sample_after_s();
  EXPECT_GE(newest()[Figure::kOperations], 0);
  EXPECT_LE(newest()[Figure::kOperations], 40);
}

TEST_F(HistorySamplerTest, CommandsAreCountedForTenSeconds) {
  run({"GET", "a"});  // the call of GET precedes the first sample, so the history must not show it
  sample_after_s();
  for (int i = 0; i < 10; ++i) {
    run({"SET", "a", "1"});
    sample_after_s();
  }
  const History& history = sampler_.history();
  ASSERT_EQ(history.intervals().size(), 1U);
  EXPECT_EQ(history.commands()[0][index_of("set")].calls, 10);
  EXPECT_GT(history.commands()[0][index_of("set")].percentile99_us, 0);
  EXPECT_EQ(history.commands()[0][index_of("get")].calls, 0);
}

TEST_F(HistorySamplerTest, AnHourIsKept) {
  for (int i = 0; i < 5000; ++i) sample_after_s();
  const auto& moments = sampler_.history().moments();
  EXPECT_EQ(moments.size(), 3600U);
  EXPECT_EQ(moments[3599].time_ms - moments[0].time_ms, 3'599'000);
  EXPECT_EQ(sampler_.history().intervals().size(), 360U);
}

TEST_F(HistorySamplerTest, TakesLessThanFourMebibytes) {
  for (size_t i = 0; i < registry_->size(); ++i) {
    statistics_.thread(0).commands[i].calls.add();
    statistics_.thread(0).commands[i].add_latency(1000);
  }
  for (int i = 0; i < 5000; ++i) sample_after_s();
  // size_bytes() counts one hour of history and a LatencyTally for each command.
  EXPECT_GT(sampler_.size_bytes(),
            sampler_.history().size_bytes() + registry_->size() * sizeof(LatencyTally));
  EXPECT_LT(sampler_.size_bytes(), HistorySampler::kBytesMax);
}

}  // namespace
}  // namespace server::admin
