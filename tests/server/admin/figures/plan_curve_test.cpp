// SPDX-License-Identifier: MIT
#include "server/admin/figures/plan_curve.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"

namespace server::admin {
namespace {

using core::bloom::FilterParameters;

TEST(PlanCurveTest, ReachesTheRequestedRateAtTheCapacity) {
  for (const auto layout : {core::bloom::kNativeLayout, core::bloom::kFingerprintLayout}) {
    FilterParameters parameters;
    parameters.error_rate = 0.01;
    parameters.capacity = 100'000;
    parameters.expansion = 0;
    parameters.layout = layout;
    const auto curve = plan_curve(parameters);
    ASSERT_EQ(curve.size(), 40U);
    EXPECT_TRUE(std::ranges::is_sorted(curve, {}, &PlanPoint::error_rate));
    EXPECT_EQ(curve[19].items, 100'000);
    EXPECT_LE(curve[19].error_rate, 0.0101);
    EXPECT_GT(curve[39].error_rate, curve[19].error_rate);
  }
}

TEST(PlanCurveTest, AWindowKeepsItsRateWithAllGenerationsAlive) {
  FilterParameters parameters;
  parameters.error_rate = 0.01;
  parameters.capacity = 100'000;
  parameters.expansion = 0;
  parameters.window = {86'400'000, core::bloom::WindowUnit::kMilliseconds, 4, false};
  const auto curve = plan_curve(parameters);
  ASSERT_EQ(curve.size(), 40U);
  EXPECT_LE(curve[19].error_rate, 0.0101);
  EXPECT_GT(curve[19].error_rate, 0.001);
}

// The error rates and sizes equal those that BF.STATS reports for a filled filter with the same
// parameters.
TEST(PlanCurveTest, IsThePredictionOfAFilterThatHasGrown) {
  for (const uint32_t expansion : {0U, 1U, 2U}) {
    FilterParameters parameters;
    parameters.error_rate = 0.001;
    parameters.capacity = 2'000;
    parameters.expansion = expansion;
    const auto curve = plan_curve(parameters);
    ASSERT_EQ(curve.size(), 40U);
    const core::UnlimitedMemory memory;
    auto filter = *core::bloom::ScalableFilter::create(parameters, memory);
    uint64_t serial = 0;
    for (const auto& [items, rate, bytes] : curve) {
      if (expansion == 0 && static_cast<uint64_t>(items) > parameters.capacity) break;
      while (filter->item_count() < static_cast<uint64_t>(items)) {
        filter->add(fmt::format("item:{}", ++serial), memory);
      }
      EXPECT_NEAR(filter->predicted_error_rate(), rate, rate * 1e-6) << items;
      EXPECT_EQ(filter->size_bytes(), bytes) << items;
    }
  }
}

TEST(PlanCurveTest, NoFilterNoCurve) {
  FilterParameters parameters;
  parameters.error_rate = 2;
  EXPECT_TRUE(plan_curve(parameters).empty());
}

}  // namespace
}  // namespace server::admin
