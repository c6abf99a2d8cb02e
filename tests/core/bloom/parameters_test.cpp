// SPDX-License-Identifier: MIT
#include "core/bloom/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/filters.h"

namespace core::bloom {
namespace {

TEST(ParametersTest, NativeErrorsSumToAtMostTheRequestedRate) {
  for (const uint64_t capacity : {1, 100, 511, 512, 1000000}) {
    for (const double ratio : {0.0, 0.1, 0.5, 0.9, 0.999}) {
      auto parameters = filters::parameters(NativeLayout::kId, capacity, 0.01);
      parameters.tightening_ratio = ratio;
      double sum = 0;
      for (uint32_t i = 0; i < kMaxNativeLayers; ++i) sum += layer_error_rate(parameters, i);
      EXPECT_LE(sum, 0.01 * (1 + 1e-12)) << capacity << " ratio " << ratio;
      // The error rates of all layers sum to nearly the requested rate. With ratios near one, the
      // sum is lower, because a filter has at most kMaxNativeLayers layers.
      if (ratio < 0.99) {
        EXPECT_GT(sum, 0.0099);
      }
      EXPECT_EQ(layer_error_rate(parameters, kMaxNativeLayers), 0.0);
    }
  }
}

TEST(ParametersTest, NativeErrorsNeverRise) {
  const auto parameters = filters::parameters(NativeLayout::kId, 1000, 0.01);
  for (uint32_t i = 1; i < kMaxNativeLayers; ++i) {
    EXPECT_LT(layer_error_rate(parameters, i), layer_error_rate(parameters, i - 1));
  }
}

TEST(ParametersTest, ExplicitTighteningIsKept) {
  auto parameters = filters::parameters(NativeLayout::kId, 1000, 0.01);
  parameters.tightening_ratio = 0.75;
  EXPECT_DOUBLE_EQ(layer_error_rate(parameters, 0), 0.0025);
  EXPECT_DOUBLE_EQ(layer_error_rate(parameters, 2) / layer_error_rate(parameters, 1), 0.75);
}

TEST(ParametersTest, NonScalingLayerGetsTheFullRate) {
  for (const auto layout : filters::kLayouts) {
    EXPECT_EQ(layer_error_rate(filters::parameters(layout, 100, 0.01, 0), 0), 0.01);
  }
}

TEST(ParametersTest, ForeignSeriesEqualThoseOfTheServers) {
  const auto redis = filters::parameters(RedisBloomLayout::kId, 100, 0.01);
  EXPECT_EQ(layer_error_rate(redis, 0), 0.005);
  EXPECT_EQ(layer_error_rate(redis, 3), 0.000625);
  auto valkey = filters::parameters(ValkeyBloomLayout::kId, 100, 0.01);
  EXPECT_EQ(layer_error_rate(valkey, 0), 0.01);
  EXPECT_EQ(layer_error_rate(valkey, 2), 0.0025);
  valkey.tightening_ratio = 0.25;
  EXPECT_EQ(layer_error_rate(valkey, 2), 0.000625);
}

TEST(ParametersTest, RedisBloomHalvesTheLastLayersRate) {
  const auto redis = filters::parameters(RedisBloomLayout::kId, 100, 0.01);
  const auto plan = plan_next_layer(redis, 1, {100, 0.01, {}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->error_rate, 0.005);
  EXPECT_EQ(plan->capacity, 200U);
}

TEST(ParametersTest, CapacityThatOverflowsIsNotPlanned) {
  const uint64_t most = std::numeric_limits<int64_t>::max();
  for (const auto layout : filters::kLayouts) {
    auto parameters = filters::parameters(layout, 100, 0.01, 32768);
    EXPECT_FALSE(plan_next_layer(parameters, 1, {most / 4, 0.001, {}}));
    parameters.capacity = most;
    parameters.error_rate = 1e-300;
    EXPECT_FALSE(plan_first_layer(parameters));
    EXPECT_EQ(planned_bytes(parameters), std::numeric_limits<uint64_t>::max());
  }
}

TEST(ParametersTest, RatesNearOneStillHaveBits) {
  for (const auto layout : filters::kLayouts) {
    const auto plan = plan_first_layer(filters::parameters(layout, 1, 0.9999999, 0));
    ASSERT_TRUE(plan);
    EXPECT_GE(plan->geometry.bit_count, 1U);
    EXPECT_GE(plan->geometry.hash_count, 1U);
  }
}

TEST(ForecastScalingTest, EqualsWhatValkeyBloomReports) {
  constexpr uint64_t kLimitBytes = 128 << 20;
  constexpr uint64_t kEverything = std::numeric_limits<int64_t>::max();
  const auto forecast = [&](uint64_t capacity, double rate, uint32_t expansion) {
    return forecast_scaling(filters::parameters(ValkeyBloomLayout::kId, capacity, rate, expansion),
                            kEverything, {.bytes = kLimitBytes});
  };
  EXPECT_EQ(forecast(100, 0.01, 2).capacity, 26214300U);
  EXPECT_EQ(forecast(10000, 0.001, 2).capacity, 20470000U);
  EXPECT_EQ(forecast(100, 1e-8, 2).capacity, 13107100U);
  EXPECT_EQ(forecast(100, 0.01, 2).limit, ScalingLimit::kMemory);
  EXPECT_EQ(forecast(100, 0.01, 1).capacity, 101600U);
  EXPECT_EQ(forecast(100, 0.01, 1).limit, ScalingLimit::kErrorRate);
}

TEST(ForecastScalingTest, ReachableCapacityHasNoLimit) {
  for (const auto layout : filters::kLayouts) {
    const auto forecast =
        forecast_scaling(filters::parameters(layout, 100, 0.01), 1000, {.bytes = 1 << 20});
    EXPECT_EQ(forecast.limit, ScalingLimit::kNone);
    EXPECT_EQ(forecast.capacity, 1500U);
  }
}

TEST(ForecastScalingTest, LayersAreLimited) {
  for (const auto layout : filters::kLayouts) {
    const auto parameters = filters::parameters(layout, 100, 0.01);
    EXPECT_EQ(forecast_scaling(parameters, 700, {.layers = 3}).limit, ScalingLimit::kNone);
    EXPECT_EQ(forecast_scaling(parameters, 701, {.layers = 3}).limit, ScalingLimit::kLayers);
  }
}

TEST(ForecastScalingTest, ForecastEndsForEveryExpansionAndLimit) {
  constexpr uint64_t kNoMaximum = std::numeric_limits<uint64_t>::max();
  for (const auto layout : filters::kLayouts) {
    for (const uint32_t expansion : {1U, 2U, 32768U, 4294967295U}) {
      const auto forecast =
          forecast_scaling(filters::parameters(layout, 7, 0.01, expansion), kNoMaximum, {});
      EXPECT_NE(forecast.limit, ScalingLimit::kNone);
    }
  }
}

}  // namespace
}  // namespace core::bloom
