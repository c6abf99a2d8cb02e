// SPDX-License-Identifier: MIT
//
// A filter that was accepted in one form is accepted in every form that it can be written in, and
// is the same then.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "core/bloom/redisbloom_layout.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/filters/valkeybloom_blob.h"
#include "tests/support/budget.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using core::bloom::LayoutId;
using core::bloom::RedisBloomLayout;
using core::bloom::ScalableFilter;
using filters::make;
using filters::parameters_of;
using FilterPtr = std::unique_ptr<ScalableFilter>;

const support::Budget kBudget(1 << 20);

std::string value_of(const ScalableFilter& filter) {
  std::string bytes;
  ByteWriter writer(bytes);
  encode_filter(writer, filter, Packing::kNever);
  return bytes;
}

core::Result<FilterPtr> read_value(std::string_view bytes) {
  StreamReader reader(bytes);
  return decode_filter(reader, kBudget);
}

void expect_same_in_every_form(const ScalableFilter& filter) {
  const std::string value = value_of(filter);
  const std::string header = encode_chunk_header(filter);
  const auto from_value = read_value(value);
  ASSERT_TRUE(from_value) << from_value.error().message;
  EXPECT_EQ(value_of(**from_value), value);
  EXPECT_EQ(encode_chunk_header(**from_value), header);
  const auto from_header = decode_chunk_header(header, kBudget);
  ASSERT_TRUE(from_header) << from_header.error().message;
  EXPECT_EQ(encode_chunk_header(**from_header), header);
  auto parameters = filter.parameters();
  // Where rounding up made room, that is all that is stored.
  parameters.capacity = filter.layer_info(0).capacity;
  EXPECT_EQ((*from_header)->parameters(), parameters);
  if (filter.layout() != LayoutId::kValkeyBloom) return;
  const auto from_load = decode_load_payload(encode_load_payload(filter), kBudget);
  ASSERT_TRUE(from_load) << from_load.error().message;
  EXPECT_EQ(value_of(**from_load), value);
}

// Filters of the other servers, and ours.
std::vector<FilterPtr> some_filters() {
  std::vector<FilterPtr> filters;
  for (const char* name : {"scaled", "nonscaling", "exp4", "empty", "loose"}) {
    const auto payload = vectors::read(fmt::format("redisbloom/dump/{}.bin", name));
    filters.push_back(std::move(*read_value(payload.substr(1))));
    const auto load = vectors::read(fmt::format("valkey-bloom/load/{}.bin", name));
    filters.push_back(std::move(*decode_load_payload(load, kBudget)));
  }
  for (const uint32_t expansion : {0U, 1U, 2U}) {
    filters.push_back(make(parameters_of(LayoutId::kNative, 0.01, 20, expansion), "n", 60));
  }
  auto rounded = parameters_of(LayoutId::kRedisBloom, 0.02, 10, 2);
  rounded.rounds_to_power_of_two = true;
  filters.push_back(make(rounded, "r", 60));
  return filters;
}

void overwrite(std::string& bytes, size_t offset, double value) {
  std::string text;
  ByteWriter(text).f64(value);
  bytes.replace(offset, text.size(), text);
}

// Where a chunk header holds what, behind 20 bytes of which each layer has 53.
constexpr size_t kHead = 20;
constexpr size_t kLayer = 53;
constexpr size_t kItemsAt = kHead + 16;
constexpr size_t kRateAt = kHead + 24;
constexpr size_t kBitsPerItemAt = kHead + 32;
constexpr size_t kHashesAt = kHead + 40;

TEST(FilterForms, EveryFilterIsTheSameInAll) {
  for (const FilterPtr& filter : some_filters()) expect_same_in_every_form(*filter);
}

TEST(FilterForms, WhateverIsFlippedItIsRefusedOrTheSameInAll) {
  constexpr uint64_t kSeed = 22;
  constexpr int kFlips = support::rounds(3000, 300);
  std::mt19937_64 random(kSeed);
  const auto flipped = [&random](std::string bytes) {
    const size_t at = random() % std::min<size_t>(bytes.size(), 300);
    bytes[at] ^= static_cast<char>(1U << random() % 8);
    // The low bits of doubles are where a check is closest.
    if (random() % 2 == 0) bytes[random() % std::min<size_t>(bytes.size(), 300)] ^= 1;
    return bytes;
  };
  const auto judge = [](const core::Result<FilterPtr>& filter) {
    if (filter) expect_same_in_every_form(**filter);
  };
  for (const FilterPtr& filter : some_filters()) {
    for (int i = 0; i < kFlips && !testing::Test::HasFailure(); ++i) {
      judge(read_value(flipped(value_of(*filter))));
      judge(decode_chunk_header(flipped(encode_chunk_header(*filter)), kBudget));
      if (filter->layout() != LayoutId::kValkeyBloom) continue;
      judge(decode_load_payload(flipped(encode_load_payload(*filter)), kBudget));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << kSeed;
  }
}

TEST(FilterForms, AValkeyBloomLayerHasTheRateOfItsSeries) {
  const auto filter = make(parameters_of(LayoutId::kValkeyBloom, 0.01, 10, 2), "v", 100);
  const std::string honest = encode_chunk_header(*filter);
  ASSERT_GT(filter->layer_count(), 1U);
  ASSERT_TRUE(decode_chunk_header(honest, kBudget));
  // That of the whole filter stands behind the layers.
  for (const size_t at : {kHead + filter->layer_count() * kLayer, kRateAt, kRateAt + kLayer}) {
    std::string forged = honest;
    overwrite(forged, at, 0.02);
    EXPECT_FALSE(decode_chunk_header(forged, kBudget)) << at;
  }
}

TEST(FilterForms, OlderLayersOfValkeyBloomAreFull) {
  const auto filter = make(parameters_of(LayoutId::kValkeyBloom, 0.01, 10, 2), "v", 100);
  std::string header = encode_chunk_header(*filter);
  ASSERT_EQ(header[kItemsAt], 10);
  header[kItemsAt] = 9;
  header[0] = static_cast<char>(header[0] - 1);
  EXPECT_FALSE(decode_chunk_header(header, kBudget));
}

// Four hashes end and five begin at a rate of 1/16, to one machine here and to another there.
TEST(FilterForms, RatesBetweenTwoHashCountsAreTakenWithEither) {
  auto parameters = parameters_of(LayoutId::kRedisBloom, 0.125, 100, 2);
  const std::string honest = encode_chunk_header(*make(parameters, "b", 0));
  int taken = 0;
  for (const double rate_step : {-1e-14, -1e-16, 0.0, 1e-16, 1e-14}) {
    for (const double bits_step : {-1e-14, -2e-16, 0.0, 2e-16, 1e-14}) {
      for (const char hashes : {3, 4, 5, 6}) {
        const double rate = 0.0625 * (1 + rate_step);
        std::string header = honest;
        overwrite(header, kRateAt, rate);
        overwrite(header, kBitsPerItemAt, RedisBloomLayout::bits_per_item(rate) * (1 + bits_step));
        header[kHashesAt] = hashes;
        const auto filter = decode_chunk_header(header, kBudget);
        ASSERT_EQ(filter.has_value(), hashes == 4 || hashes == 5) << int(hashes);
        if (!filter) continue;
        expect_same_in_every_form(**filter);
        ++taken;
        // What RedisBloom demands of what we write.
        const std::string again = encode_chunk_header(**filter);
        ByteReader reader(std::string_view(again).substr(kBitsPerItemAt));
        EXPECT_EQ(std::ceil(0.693147180559945 * reader.f64()), hashes);
      }
    }
  }
  EXPECT_EQ(taken, 50);
}

TEST(FilterForms, AFilterGrowsNoFurtherThanOneMayBeRead) {
  auto parameters = parameters_of(LayoutId::kValkeyBloom, 1e-30, 1, 1);
  parameters.tightening_ratio = 0.9999;
  const auto filter = make(parameters, "v", 1);
  auto outcome = core::bloom::AddOutcome::kAdded;
  constexpr int kItems = 20'000;
  for (int i = 0; i < kItems && outcome != core::bloom::AddOutcome::kCannotGrow; ++i) {
    outcome = filter->add(std::to_string(i), core::UnlimitedMemory());
  }
  EXPECT_EQ(filter->layer_count(), core::bloom::kMaxLayers);
  expect_same_in_every_form(*filter);
}

// RedisBloom keeps the growth of a filter that never grows.
TEST(FilterForms, TheGrowthOfAFilterThatDoesNotScaleIsKept) {
  const std::string usual = vectors::read("redisbloom/dump/nonscaling.bin");
  const std::string_view body = std::string_view(usual).substr(1, usual.size() - 11);
  const size_t at = body.find(std::string_view("\x02\x0D\x02\x02", 4)) + 3;
  for (const char growth : {0, 1, 2, 7}) {
    std::string value(body);
    value[at] = growth;
    const auto filter = read_value(value);
    ASSERT_TRUE(filter) << filter.error().message;
    std::string written;
    ByteWriter writer(written);
    encode_filter(writer, **filter, Packing::kIfSmaller);
    EXPECT_EQ(written, value);
    EXPECT_EQ(encode_chunk_header(**filter)[16], growth);
    EXPECT_EQ(encode_chunk_header(*(*filter)->clone())[16], growth);
    EXPECT_FALSE((*filter)->is_scaling());
    expect_same_in_every_form(**filter);
  }
}

}  // namespace
}  // namespace persistence
