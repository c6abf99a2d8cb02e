// SPDX-License-Identifier: MIT
#include "persistence/filters/bloomery_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "core/bloom/filter_union.h"
#include "persistence/bytes/module_value.h"
#include "tests/support/filter_forms.h"

namespace persistence {
namespace {

using namespace filter_forms;

TEST(BloomeryCodec, NativeFiltersSurviveARoundTrip) {
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

TEST(BloomeryCodec, BigArraysUseTheNewerVersion) {
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

// Returns the union of two filters. The item count of a union is an estimate. Overfill::kAllowed
// permits this union to hold more items than its capacity.
std::unique_ptr<ScalableFilter> estimated_filter(int item_count, uint64_t capacity = 100) {
  const auto a = make(parameters_of(NativeLayout::kId, 0.01, capacity, 2), "a", item_count);
  const auto b = make(parameters_of(NativeLayout::kId, 0.01, capacity, 2), "b", item_count);
  const std::array<const ScalableFilter*, 2> both{a.get(), b.get()};
  return *core::bloom::unite(both, core::bloom::Overfill::kAllowed);
}

TEST(BloomeryCodec, EstimatedCountsAreMarkedInEveryForm) {
  for (const int item_count : {20, 90, 500}) {
    const auto filter = estimated_filter(item_count);
    ASSERT_TRUE(filter->parameters().item_count_is_estimated);
    EXPECT_EQ(filter->layer_info(0).item_count > 100, item_count > 50);
    EXPECT_EQ(bloomery_version_of(*filter), kBloomeryVersionWithFeatures);
    expect_same_in_every_form(*filter);
    // The loaded filter and the original filter get the same items, and must grow in the same way.
    const auto loaded = load(payload_of(*filter, Packing::kIfSmaller));
    ASSERT_TRUE(loaded);
    for (int i = 0; i < 300; ++i) {
      const std::string item = fmt::format("later:{}", i);
      EXPECT_EQ(filter->add(item, kUnlimited), (*loaded)->add(item, kUnlimited));
    }
    expect_equal(*filter, **loaded);
  }
  const auto big = estimated_filter(5, 2'000'000);
  const auto loaded = load(payload_of(*big, Packing::kNever));
  ASSERT_TRUE(loaded) << loaded.error().message;
  expect_equal(*big, **loaded);
}

// Returns the encoding of a filter with the feature bits `features`. In the encoding, the feature
// bits follow the module's id, the number of layers, the expansion, the error rate and the
// tightening ratio.
std::string with_features(uint64_t features) {
  std::string bytes;
  ByteWriter writer(bytes);
  ModuleWriter fields(writer, module_id("bloomery-", kBloomeryVersionWithFeatures));
  const auto filter = make(parameters_of(NativeLayout::kId, 0.01, 100, 2), "n", 5);
  const auto parameters = filter->parameters();
  fields.unsigned_number(1);
  fields.unsigned_number(parameters.expansion);
  fields.real_number(parameters.error_rate);
  fields.real_number(parameters.tightening_ratio);
  fields.unsigned_number(features);
  const std::string plain = value_of(*filter);
  // The bytes that follow the tightening ratio equal those of the same filter encoded without
  // feature bits.
  const std::string head = [&] {
    std::string text;
    ByteWriter out(text);
    ModuleWriter all(out, module_id("bloomery-", kBloomeryVersion));
    all.unsigned_number(1);
    all.unsigned_number(parameters.expansion);
    all.real_number(parameters.error_rate);
    all.real_number(parameters.tightening_ratio);
    return text;
  }();
  EXPECT_TRUE(plain.starts_with(head));
  return bytes + plain.substr(head.size());
}

TEST(BloomeryCodec, UnknownFeaturesAreRejected) {
  const auto marked = read_value(with_features(1));
  ASSERT_TRUE(marked) << marked.error().message;
  EXPECT_TRUE((*marked)->parameters().item_count_is_estimated);
  // Feature bits of zero are invalid, because a filter without features is stored in an older
  // version of the format. No version uses the highest feature bit yet.
  for (const uint64_t features : {uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 63) + 1}) {
    EXPECT_FALSE(read_value(with_features(features))) << features;
  }
}

TEST(BloomeryCodec, OnlyEstimatesExceedACapacity) {
  const auto filter = estimated_filter(90);
  std::string header = encode_chunk_header(*filter);
  ASSERT_TRUE(decode_chunk_header(header, kUnlimited));
  // In the chunk header, the option bits follow the item count and the number of layers.
  constexpr size_t kOptionsAt = 12;
  std::string unmarked = header;
  unmarked[kOptionsAt + 2] = 0;
  EXPECT_FALSE(decode_chunk_header(unmarked, kUnlimited));
  // Files of the valkey-bloom layout cannot mark an item count as estimated.
  std::string foreign =
      encode_chunk_header(*make(parameters_of(ValkeyBloomLayout::kId, 0.01, 100, 2), "v", 5));
  ASSERT_TRUE(decode_chunk_header(foreign, kUnlimited));
  foreign[kOptionsAt + 2] = 1;
  EXPECT_FALSE(decode_chunk_header(foreign, kUnlimited));
}

// A later version of the server may compute other bit counts for the same parameters. So the server
// accepts bit counts between half and twice those that it computes itself.
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
