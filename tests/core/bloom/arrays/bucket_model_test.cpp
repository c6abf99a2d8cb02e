// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/bucket_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace core::bloom {
namespace {

double bits_per_item(const BucketModel& model, uint64_t items) {
  return model.line_count * 512 / double(items);
}

TEST(BucketModelTest, ShapesFitTheirLineAndKeepTheRate) {
  for (const uint64_t items : {1, 2, 3, 7, 20, 100, 1000, 54'321, 1'000'000}) {
    for (double rate = 0.7; rate > 0x1p-56; rate *= 0.3) {
      const auto model = solve_bucket_model(items, rate);
      ASSERT_TRUE(model) << items << " at " << rate;
      EXPECT_TRUE(BucketModel::is_shape(model->slots_per_bucket, model->fingerprint_bits));
      EXPECT_GE(model->reach(), double(items)) << items << " at " << rate;
      EXPECT_LE(model->error_rate(double(items)), rate) << items;
      EXPECT_EQ(std::fmod(model->bucket_count(), 2), 0) << items << " at " << rate;
      EXPECT_GE(model->bucket_count(), 2) << items << " at " << rate;
    }
  }
}

TEST(BucketModelTest, OnePercentErrorTakesTenToTwelveBits) {
  for (const uint64_t items : {10'000, 1'000'000, 1'000'000'000}) {
    // The error rates of a filter that never grows and of the first layer of a growing filter.
    for (const double rate : {0.01, 0.00625}) {
      const auto model = solve_bucket_model(items, rate);
      ASSERT_TRUE(model);
      EXPECT_GE(bits_per_item(*model, items), 10) << items << " at " << rate;
      EXPECT_LE(bits_per_item(*model, items), 12) << items << " at " << rate;
    }
  }
}

TEST(BucketModelTest, SmallerThanABloomFilterBelowOnePerMille) {
  constexpr uint64_t kItems = 10'000'000;
  for (double rate = 0.00095; rate > 1e-12; rate *= 0.83) {
    const auto model = solve_bucket_model(kItems, rate);
    ASSERT_TRUE(model) << rate;
    EXPECT_LT(bits_per_item(*model, kItems), -std::log2(rate) / std::log(2.0)) << rate;
  }
}

TEST(BucketModelTest, LargestCapacityIsSizedWithoutOverflow) {
  constexpr uint64_t kItems = uint64_t{1} << 48;
  const auto model = solve_bucket_model(kItems, 1e-6);
  ASSERT_TRUE(model);
  EXPECT_LT(bits_per_item(*model, kItems), 28);
}

}  // namespace
}  // namespace core::bloom
