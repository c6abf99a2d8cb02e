// SPDX-License-Identifier: MIT
#include "core/bloom/lane_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/bloom/layer.h"
#include "core/bloom/layouts.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"

namespace core::bloom {
namespace {

FilterParameters fixed(uint64_t capacity, double error_rate) {
  return filters::parameters(kLaneLayout, capacity, error_rate, 0);
}

double classic_bits(double items, double error_rate) {
  return -items * std::log2(error_rate) / std::log(2.0);
}

TEST(LaneLayoutTest, BitsOfAnItemAreFrozen) {
  // The hash and the bits of an item are part of the file format and must never change.
  EXPECT_EQ(hash_lanes("item"), (ItemHash{0x6CA8F7B0F03F9E41, 0}));
  EXPECT_EQ(hash_lanes("an item of more than sixteen bytes"), (ItemHash{0x241B1C3E12A98096, 0}));
  const Geometry geometry{8 * kLineBits, 6, 2, false};
  BitArray bits = *BitArray::allocate(geometry.bit_count);
  EXPECT_TRUE(LaneLayout::mark(bits.words(), geometry, ItemHash{0x8123456789ABCDEF, 0}));
  EXPECT_EQ(bits.count_ones(), 6U);
  std::string set;
  for (uint64_t bit = 0; bit < bits.bit_count(); ++bit) {
    if (bits.words()[bit / 64] >> (bit % 64) & 1) set += std::to_string(bit) + " ";
  }
  EXPECT_EQ(set, "833 887 943 2384 2415 2466 ");
}

TEST(LaneLayoutTest, VisitedBitsAreTheMarkedBits) {
  for (const double rate : {0.25, 0.01, 1e-6}) {
    const Geometry geometry = LaneLayout::plan(fixed(1000, rate), 1000, rate)->geometry;
    BitArray marked = *BitArray::allocate(geometry.bit_count);
    BitArray visited = *BitArray::allocate(geometry.bit_count);
    for (int i = 0; i < 500; ++i) {
      const ItemHash hash = hash_lanes(std::to_string(i));
      LaneLayout::mark(marked.words(), geometry, hash);
      LaneLayout::visit_bits(geometry, hash, [&](uint64_t bit) {
        visited.words()[bit / 64] |= uint64_t{1} << (bit % 64);
      });
    }
    EXPECT_TRUE(std::ranges::equal(marked.bytes(), visited.bytes()));
  }
}

TEST(LaneLayoutTest, FixedFiltersReadOneLineDownTo1e3) {
  constexpr uint64_t kItems = 1'000'000;
  for (double rate = 0.01; rate >= 0.001; rate *= 0.9) {
    const LayerPlan plan = *LaneLayout::plan(fixed(kItems, rate), kItems, rate);
    EXPECT_EQ(plan.geometry.lines_per_lookup, 1) << rate;
    EXPECT_LE(double(plan.geometry.bit_count), 1.083 * classic_bits(kItems, rate)) << rate;
  }
  const LayerPlan strict = *LaneLayout::plan(fixed(kItems, 0.001), kItems, 0.001);
  EXPECT_EQ(strict.geometry.lines_per_lookup, 1);
}

TEST(LaneLayoutTest, MemoryStaysWithinItsSlack) {
  for (double rate = 0.5; rate > 0x1p-30; rate *= 0.7) {
    constexpr uint64_t kItems = 1'000'000;
    const auto parameters = filters::parameters(kLaneLayout, kItems, rate);
    const auto fixed_plan = LaneLayout::plan(fixed(kItems, rate), kItems, rate);
    const auto later_plan = LaneLayout::plan(parameters, kItems, rate / 8);
    ASSERT_TRUE(fixed_plan && later_plan) << rate;
    EXPECT_LE(double(fixed_plan->geometry.bit_count), 1.084 * classic_bits(kItems, rate)) << rate;
    EXPECT_LE(double(later_plan->geometry.bit_count), 1.031 * classic_bits(kItems, rate / 8));
    EXPECT_LE(LaneLayout::predicted_error(fixed_plan->geometry, kItems), rate);
    EXPECT_TRUE(LaneLayout::is_valid(fixed_plan->geometry));
  }
}

TEST(LaneLayoutTest, SharesOfAllLayersSumToOne) {
  for (const uint64_t capacity : {100, 1'000'000}) {
    const auto parameters = filters::parameters(kLaneLayout, capacity, 0.01);
    double sum = 0;
    for (uint32_t index = 0; index < kMaxNativeLayers; ++index) {
      sum += LaneLayout::layer_error_rate(parameters, index);
    }
    EXPECT_LE(sum, 0.01);
    EXPECT_GT(sum, 0.0099);
    EXPECT_EQ(LaneLayout::layer_error_rate(parameters, kMaxNativeLayers), 0);
  }
}

// Compares the total number of bits with that of RedisBloom. There, layer i has the error rate
// E / 2^(i + 1) and the number of bits that is optimal for a classic Bloom filter. The bounds are
// those of docs/bloom_math.md, "The series of layer errors".
TEST(LaneLayoutTest, GrowingFiltersNeedLittleMoreThanClassic) {
  for (const double rate : {1e-2, 1e-3, 1e-6}) {
    for (const uint64_t items : {100, 1000, 10'000, 100'000}) {
      const auto parameters = filters::parameters(kLaneLayout, items, rate);
      auto plan = plan_first_layer(parameters);
      double ours = 0;
      double classic = 0;
      for (uint32_t layers = 1; layers <= 14; ++layers) {
        ASSERT_TRUE(plan);
        ours += double(plan->geometry.bit_count);
        classic += classic_bits(double(plan->capacity), rate * std::exp2(-double(layers)));
        double bound = layers <= 5 ? 1.06 : layers <= 7 ? 1.02 : 1;
        if (items < 10'000) bound = items < 1000 ? 1.3 : 1.09;
        EXPECT_LE(ours / classic, bound) << rate << " and " << items << ", layers: " << layers;
        plan = plan_next_layer(parameters, layers, *plan);
      }
    }
  }
}

TEST(LaneLayoutTest, TinyFiltersKeepTheirErrorRateOnAverage) {
  constexpr uint64_t kFilters = support::rounds(500, 100);
  constexpr uint64_t kProbes = 4000;
  for (const uint64_t capacity : {1, 2, 3, 5, 10, 20, 35, 50, 100, 300}) {
    for (const double rate : {0.3, 0.01, 0.001, 1e-4}) {
      const LayerPlan plan = *LaneLayout::plan(fixed(capacity, rate), capacity, rate);
      uint64_t found = 0;
      for (uint64_t filter = 0; filter < kFilters; ++filter) {
        Layer layer = *Layer::create(plan);
        const std::string prefix = std::to_string(filter);
        for (uint64_t i = 0; i < capacity; ++i) {
          layer.mark<LaneLayout>(hash_lanes(prefix + "+" + std::to_string(i)));
        }
        for (uint64_t i = 0; i < kProbes; ++i) {
          found += layer.check<LaneLayout>(hash_lanes(prefix + "-" + std::to_string(i)));
        }
      }
      const double probes = double{kFilters * kProbes};
      const double measured = double(found) / probes;
      const double predicted = LaneLayout::predicted_error(plan.geometry, capacity);
      const double slack = 4.5 * std::sqrt(rate / probes) + 0.01 * rate;
      EXPECT_LE(measured, rate + slack) << capacity << " at " << rate;
      EXPECT_NEAR(measured, predicted, 0.05 * predicted + slack) << capacity << " at " << rate;
    }
  }
}

TEST(LaneLayoutTest, HundredItemsAtOnePercentFitInTwoLines) {
  const auto parameters = filters::parameters(kLaneLayout, 100, 0.01);
  const auto plan = plan_first_layer(parameters);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->geometry.bit_count, 2 * kLineBits);
  EXPECT_EQ(plan->geometry.lines_per_lookup, 1);
}

TEST(LaneLayoutTest, EqualHashesCountAsErrors) {
  // In a filter with 2^48 items, one in 2^16 absent items has the same 64-bit hash as some item.
  constexpr uint64_t kMost = kMaxLayerCapacity;
  const Geometry geometry = LaneLayout::plan(fixed(kMost, 1e-4), kMost, 1e-4)->geometry;
  LineModel model{double(geometry.bit_count / kLineBits), geometry.lines_per_lookup,
                  unsigned{geometry.hash_count} / geometry.lines_per_lookup};
  model.has_lanes = true;
  EXPECT_LE(model.error_rate(double(kMost)), 1e-4 - 0x1p-16);
  EXPECT_NEAR(LaneLayout::predicted_error(geometry, kMost), 1e-4, 1e-6);
}

TEST(LaneLayoutTest, FiltersStricterThanTheHashAreRefused) {
  const core::UnlimitedMemory budget;
  EXPECT_TRUE(ScalableFilter::create(fixed(100, 1e-9), budget));
  EXPECT_FALSE(ScalableFilter::create(fixed(100, 1e-10), budget));
}

TEST(NativeVersionTest, LowRatesGetVersionOne) {
  EXPECT_EQ(native_layout(1, {}), kNativeLayout);
  EXPECT_EQ(native_layout(2, {}), kLaneLayout);
  EXPECT_EQ(native_layout(2, fixed(1000, 1e-7)), kLaneLayout);
  EXPECT_EQ(native_layout(2, fixed(1000, 1e-8)), kNativeLayout);
  EXPECT_EQ(native_layout(2, fixed(kMaxLayerCapacity, 0.5)), kLaneLayout);
  EXPECT_EQ(native_layout(2, fixed(kMaxLayerCapacity, 0.01)), kNativeLayout);
  // The generations of a window share the error rate.
  FilterParameters window = fixed(1000, 1e-7);
  window.window = {.length = 1000, .unit = WindowUnit::kItems, .generations = 4};
  EXPECT_EQ(native_layout(2, window), kNativeLayout);
}

}  // namespace
}  // namespace core::bloom
