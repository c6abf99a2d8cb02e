// SPDX-License-Identifier: MIT
//
// Tests that a filter that was read from any valid encoding can be written in all its encodings.
// Reading any of these must give the same filter.
#include "persistence/filters/filter_builder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/filter_forms.h"
#include "tests/support/sanitized.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using namespace filter_forms;

// Returns filters that RedisBloom and valkey-bloom have written, and filters of this server.
std::vector<FilterPtr> some_filters() {
  std::vector<FilterPtr> filters;
  for (const char* name : {"scaled", "nonscaling", "exp4", "empty", "loose"}) {
    const auto payload = vectors::read(fmt::format("redisbloom/dump/{}.bin", name));
    filters.push_back(*read_value(payload.substr(1)));
    const auto load = vectors::read(fmt::format("valkey-bloom/load/{}.bin", name));
    filters.push_back(*decode_load_payload(load, kMebibyte));
  }
  for (const uint32_t expansion : {0U, 1U, 2U}) {
    filters.push_back(make(parameters_of(NativeLayout::kId, 0.01, 20, expansion), "n", 60));
  }
  auto rounded = parameters_of(RedisBloomLayout::kId, 0.02, 10, 2);
  rounded.rounds_to_power_of_two = true;
  filters.push_back(make(rounded, "r", 60));
  return filters;
}

TEST(FilterBuilder, EveryFilterIsEqualInAllForms) {
  for (const FilterPtr& filter : some_filters()) expect_same_in_every_form(*filter);
}

TEST(FilterBuilder, FlippedBitsAreRejectedOrConsistent) {
  constexpr uint64_t kSeed = 22;
  constexpr int kFlips = support::rounds(3000, 300);
  std::mt19937_64 random(kSeed);
  const auto flipped = [&random](std::string bytes) {
    const size_t at = random() % std::min<size_t>(bytes.size(), 300);
    bytes[at] ^= static_cast<char>(1U << random() % 8);
    // Half of the calls also flip the lowest bit of a byte. If the byte is the lowest of a double,
    // this changes the double by the smallest amount.
    if (random() % 2 == 0) bytes[random() % std::min<size_t>(bytes.size(), 300)] ^= 1;
    return bytes;
  };
  const auto validate = [](const core::Result<FilterPtr>& filter) {
    if (filter) expect_same_in_every_form(**filter);
  };
  for (const FilterPtr& filter : some_filters()) {
    for (int i = 0; i < kFlips && !testing::Test::HasFailure(); ++i) {
      validate(read_value(flipped(value_of(*filter))));
      validate(decode_chunk_header(flipped(encode_chunk_header(*filter)), kMebibyte));
      if (filter->layout() != ValkeyBloomLayout::kId) continue;
      validate(decode_load_payload(flipped(load_payload_of(*filter)), kMebibyte));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << kSeed;
  }
}

TEST(FilterBuilder, FullyGrownFilterCanBeReadAgain) {
  auto parameters = parameters_of(ValkeyBloomLayout::kId, 1e-30, 1, 1);
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

TEST(FilterBuilder, BudgetIsCheckedBeforeAnyLayer) {
  const std::string payload = vectors::read("redisbloom/dump/wide.bin");
  for (const uint64_t bytes : {0, 1000, 197760}) {
    const auto refused = load(payload, support::Budget(bytes));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, kDoesNotFit);
  }
  EXPECT_TRUE(load(payload, support::Budget(198000)));
  // The header is valid and announces a filter of a terabyte.
  const auto parameters = parameters_of(RedisBloomLayout::kId, 0.01, 100, 2);
  std::string header = encode_chunk_header(*make(parameters, "", 0));
  const uint64_t capacity = uint64_t{1} << 40;
  const auto geometry =
      core::bloom::plan_first_layer(parameters_of(RedisBloomLayout::kId, 0.01, capacity, 2))
          ->geometry;
  std::string sizes;
  ByteWriter writer(sizes);
  writer.u64(geometry.size_bytes());
  writer.u64(geometry.bit_count);
  header.replace(20, 16, sizes);
  sizes.clear();
  writer.u64(capacity);
  header.replace(64, 8, sizes);
  const auto refused = decode_chunk_header(header, support::Budget(uint64_t{1} << 30));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, kDoesNotFit);
}

}  // namespace
}  // namespace persistence
