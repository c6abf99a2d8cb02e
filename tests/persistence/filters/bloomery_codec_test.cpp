// SPDX-License-Identifier: MIT
#include "persistence/filters/bloomery_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/filter_forms.h"

namespace persistence {
namespace {

using namespace filter_forms;

TEST(BloomeryCodec, NativeFiltersComeBackAndGrowTheSame) {
  for (const double ratio : {0.0, 0.7}) {
    for (const uint32_t expansion : {0U, 1U, 3U}) {
      auto parameters = parameters_of(NativeLayout::kId, 0.02, 50, expansion);
      parameters.tightening_ratio = ratio;
      const auto filter = make(parameters, "n", 120);
      for (const Packing packing : {Packing::kNever, Packing::kIfSmaller}) {
        const auto loaded = load(payload_of(*filter, packing));
        ASSERT_TRUE(loaded) << loaded.error().message;
        expect_equal(*filter, **loaded);
        EXPECT_EQ((*loaded)->parameters(), filter->parameters());
        const auto twin = filter->clone();
        for (int i = 0; i < 500; ++i) {
          const std::string item = fmt::format("later:{}", i);
          EXPECT_EQ(twin->add(item, kUnlimited), (*loaded)->add(item, kUnlimited));
        }
        expect_equal(*twin, **loaded);
      }
    }
  }
}

TEST(BloomeryCodec, BigArraysAskForTheNewerVersion) {
  constexpr uint64_t kBigCapacity = 2'000'000;
  for (const uint64_t capacity : {uint64_t{100}, kBigCapacity}) {
    const auto filter = make(parameters_of(NativeLayout::kId, 0.01, capacity, 2), "n", 5);
    const bool is_big = capacity == kBigCapacity;
    EXPECT_EQ(bloomery_version_of(*filter), is_big ? kBloomeryVersionWithRuns : kBloomeryVersion);
    const std::string value = value_of(*filter);
    StreamReader reader(value);
    EXPECT_EQ(module_version(reader.length()), bloomery_version_of(*filter));
  }
}

// How many bits are best is a model that later versions may refine.
TEST(BloomeryCodec, LayersOfAboutTheExpectedSizeAreAccepted) {
  auto parameters = parameters_of(NativeLayout::kId, 0.01, 1000, 0);
  const auto plan = core::bloom::plan_first_layer(parameters);
  ASSERT_TRUE(plan);
  for (const double share : {0.4, 0.6, 1.0, 1.9, 2.3}) {
    LayerClaim claim;
    claim.capacity = plan->capacity;
    claim.error_rate = plan->error_rate;
    claim.hash_count = plan->geometry.hash_count;
    claim.lines_per_lookup = plan->geometry.lines_per_lookup;
    claim.bit_count = static_cast<uint64_t>(share * double(plan->geometry.bit_count)) / 512 * 512;
    claim.array_bytes = claim.bit_count / 8;
    EXPECT_EQ(accept_bloomery(claim, parameters, {}).has_value(), share > 0.5 && share < 2)
        << share;
  }
}

}  // namespace
}  // namespace persistence
