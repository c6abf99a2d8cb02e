// SPDX-License-Identifier: MIT
#include "server/admin/figures/plan_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace server::admin {
namespace {

using core::bloom::FilterParameters;

TEST(PlanCurveTest, RisesThroughTheRateThatWasAskedForAtTheCapacity) {
  for (const auto layout : {core::bloom::kDefaultLayout, core::bloom::kDeletableLayout}) {
    FilterParameters parameters;
    parameters.error_rate = 0.01;
    parameters.capacity = 100'000;
    parameters.expansion = 0;
    parameters.layout = layout;
    const auto curve = plan_curve(parameters);
    ASSERT_EQ(curve.size(), 40U);
    EXPECT_TRUE(std::ranges::is_sorted(curve, {}, &std::pair<double, double>::second));
    EXPECT_EQ(curve[19].first, 100'000);
    EXPECT_LE(curve[19].second, 0.0101);
    EXPECT_GT(curve[39].second, curve[19].second);
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
  EXPECT_LE(curve[19].second, 0.0101);
  EXPECT_GT(curve[19].second, 0.001);
}

TEST(PlanCurveTest, NoFilterNoCurve) {
  FilterParameters parameters;
  parameters.error_rate = 2;
  EXPECT_TRUE(plan_curve(parameters).empty());
}

}  // namespace
}  // namespace server::admin
