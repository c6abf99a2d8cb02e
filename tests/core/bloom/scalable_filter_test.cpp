// SPDX-License-Identifier: MIT
#include "core/bloom/scalable_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/budget.h"
#include "tests/support/cpu_time.h"
#include "tests/support/filters.h"

namespace core::bloom {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kFilterSeed = 99;
const UnlimitedMemory kUnlimited;

std::unique_ptr<ScalableFilter> create(const FilterParameters& parameters) {
  auto filter = ScalableFilter::create(parameters, kUnlimited);
  EXPECT_TRUE(filter) << filter.error().message;
  return std::move(filter.value());
}

std::string present(uint64_t number) {
  return "present:" + std::to_string(number);
}
std::string absent(uint64_t number) {
  return "absent:" + std::to_string(number);
}

double observed_error_rate(const ScalableFilter& filter, uint64_t probes) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < probes; ++i) found += filter.may_contain(absent(i));
  return double(found) / double(probes);
}

bool same_bits(const ScalableFilter& left, const ScalableFilter& right) {
  if (left.layer_count() != right.layer_count()) return false;
  for (size_t i = 0; i < left.layer_count(); ++i) {
    if (!std::ranges::equal(left.layer_bits(i).bytes(), right.layer_bits(i).bytes())) return false;
  }
  return true;
}

class ScalableFilterTest : public testing::TestWithParam<LayoutId> {};
INSTANTIATE_TEST_SUITE_P(Layouts, ScalableFilterTest, testing::ValuesIn(filters::kLayouts));

TEST_P(ScalableFilterTest, GrownFilterKeepsItsErrorRateAndItems) {
  const auto filter = create(filters::parameters(GetParam(), 1000, 0.01));
  EXPECT_FALSE(std::signbit(filter->predicted_error_rate())) << "for an empty filter";
  uint64_t added = 0;
  for (uint64_t i = 0; i < 200000; ++i) {
    added += filter->add(present(i), kUnlimited) == AddOutcome::kAdded;
  }
  EXPECT_EQ(filter->item_count(), added);
  EXPECT_EQ(filter->layer_count(), 8U);
  EXPECT_EQ(filter->capacity(), 255000U);
  for (uint64_t i = 0; i < 200000; ++i) ASSERT_TRUE(filter->may_contain(present(i))) << i;
  const double probes = 200000;
  const double observed = observed_error_rate(*filter, uint64_t(probes));
  // valkey-bloom gives the full rate to its first layer, so the rates of its layers sum to twice
  // the requested rate.
  const double promised = GetParam() == ValkeyBloomLayout::kId ? 0.02 : 0.01;
  const double slack = 3 * std::sqrt(promised / probes);
  EXPECT_LE(observed, promised + slack);
  EXPECT_NEAR(filter->predicted_error_rate(), observed, 0.2 * observed + slack);
  constexpr uint64_t kWhole = uint64_t{1} << 40;
  double estimated = 0;
  double from_samples = 0;
  for (size_t i = 0; i < filter->layer_count(); ++i) {
    const LayerInfo info = filter->layer_info(i);
    if (const auto own = array_figures(GetParam(), {filter->layer_bits(i).words(), info.geometry},
                                       info.item_count)) {
      estimated += own->items;
      from_samples += own->items;
      continue;
    }
    const double sampled = filter->sampled_fill_ratio(i, 16384);
    const double whole = filter->sampled_fill_ratio(i, kWhole);
    EXPECT_NEAR(sampled, whole, 0.006) << i;
    estimated += estimated_items(filter->layer_info(i).geometry, whole);
    from_samples += estimated_items(filter->layer_info(i).geometry, sampled);
  }
  EXPECT_NEAR(estimated, double(added), 0.005 * double(added));
  EXPECT_NEAR(from_samples, double(added), 0.02 * double(added));
}

TEST_P(ScalableFilterTest, AddReturnsPresentIfItemMayBeContained) {
  const auto filter = create(filters::parameters(GetParam(), 100, 0.01));
  EXPECT_EQ(filter->add("", kUnlimited), AddOutcome::kAdded);
  EXPECT_EQ(filter->add("", kUnlimited), AddOutcome::kPresent);
  for (uint64_t i = 0; i < 2000; ++i) {
    const bool was_there = filter->may_contain(present(i));
    const auto outcome = filter->add(present(i), kUnlimited);
    EXPECT_EQ(outcome, was_there ? AddOutcome::kPresent : AddOutcome::kAdded);
  }
}

TEST_P(ScalableFilterTest, NonScalingFilterIsFullAtItsCapacity) {
  const auto filter = create(filters::parameters(GetParam(), 10, 0.001, 0));
  uint64_t number = 0;
  while (filter->item_count() < 10) {
    ASSERT_NE(filter->add(present(number++), kUnlimited), AddOutcome::kFull);
  }
  EXPECT_EQ(filter->add("one too many", kUnlimited), AddOutcome::kFull);
  EXPECT_FALSE(filter->may_contain("one too many"));
  EXPECT_EQ(filter->add(present(0), kUnlimited), AddOutcome::kPresent);
  EXPECT_EQ(filter->layer_count(), 1U);
  EXPECT_FALSE(filter->next_layer_bytes());
}

TEST_P(ScalableFilterTest, BatchesEqualSingleCalls) {
  const auto single = create(filters::parameters(GetParam(), 50, 0.05));
  const auto batched = create(filters::parameters(GetParam(), 50, 0.05));
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < 3000; ++i) texts.push_back(present(i * i % 2003));
  std::vector<AddOutcome> expected;
  for (const auto& text : texts) expected.push_back(single->add(text, kUnlimited));

  const std::vector<std::string_view> items(texts.begin(), texts.end());
  std::vector<AddOutcome> outcomes(items.size());
  // Batch sizes vary, so that groups begin and end at any item.
  for (size_t start = 0, size = 1; start < items.size(); start += size, size = size * 3 % 101 + 1) {
    const size_t count = std::min(size, items.size() - start);
    const auto batch = filters::hashes_of(*batched, std::span(items).subspan(start, count));
    ASSERT_EQ(batched->add_many(batch, std::span(outcomes).subspan(start, count), kUnlimited),
              count);
    size = count;
  }
  EXPECT_EQ(outcomes, expected);
  EXPECT_TRUE(same_bits(*single, *batched));

  std::vector<std::string> questions;
  for (uint64_t i = 0; i < 1000; ++i) questions.push_back(i % 3 ? absent(i) : present(i));
  const std::vector<std::string_view> asked(questions.begin(), questions.end());
  auto found = std::make_unique<bool[]>(asked.size());
  batched->may_contain_many(filters::hashes_of(*batched, asked),
                            std::span(found.get(), asked.size()));
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(found[i], single->may_contain(asked[i])) << asked[i];
  }
}

TEST_P(ScalableFilterTest, BatchStopsAfterTheFirstFull) {
  const auto filter = create(filters::parameters(GetParam(), 40, 0.0001, 0));
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < 100; ++i) texts.push_back(present(i));
  const std::vector<std::string_view> items(texts.begin(), texts.end());
  std::vector<AddOutcome> outcomes(items.size());
  const size_t done = filter->add_many(filters::hashes_of(*filter, items), outcomes, kUnlimited);
  ASSERT_GT(done, 40U);
  EXPECT_EQ(outcomes[done - 1], AddOutcome::kFull);
  EXPECT_EQ(filter->item_count(), 40U);
}

TEST_P(ScalableFilterTest, GrowthThatDoesNotFitLeavesTheFilterUsable) {
  const auto filter = create(filters::parameters(GetParam(), 10, 0.001));
  const support::Budget nothing(0);
  uint64_t number = 0;
  while (filter->item_count() < 10) filter->add(present(number++), nothing);
  EXPECT_EQ(filter->add("new", nothing), AddOutcome::kCannotGrow);
  EXPECT_EQ(filter->layer_count(), 1U);
  EXPECT_FALSE(filter->may_contain("new"));
  // If one item of a batch cannot be added, add_many() still processes the following items.
  const std::vector<std::string_view> items = {"new", "present:0"};
  std::vector<AddOutcome> outcomes(2);
  EXPECT_EQ(filter->add_many(filters::hashes_of(*filter, items), outcomes, nothing), 2U);
  EXPECT_EQ(outcomes[0], AddOutcome::kCannotGrow);
  EXPECT_EQ(outcomes[1], AddOutcome::kPresent);
  const support::Budget enough(filter->next_layer_bytes().value());
  EXPECT_EQ(filter->add("new", enough), AddOutcome::kAdded);
  EXPECT_EQ(filter->layer_count(), 2U);
}

TEST_P(ScalableFilterTest, BudgetIsCheckedBeforeAllocating) {
  auto parameters = filters::parameters(GetParam(), 1'000'000'000, 0.01, 0);
  const support::Budget budget(1'000'000'000);
  const auto filter = ScalableFilter::create(parameters, budget);
  ASSERT_FALSE(filter);
  EXPECT_THAT(filter.error().message, StartsWith("ERR Insufficient memory to create filter"));
  EXPECT_THAT(filter.error().message, HasSubstr(std::to_string(planned_bytes(parameters))));
  // The filter would be larger than any address space, so it is rejected with any budget.
  parameters.capacity = uint64_t{1} << 47;
  const auto huge = ScalableFilter::create(parameters, kUnlimited);
  ASSERT_FALSE(huge);
  EXPECT_THAT(huge.error().message, StartsWith("ERR Insufficient memory to create filter"));
}

TEST_P(ScalableFilterTest, ParametersOutOfRangeAreRejected) {
  const auto message = [&](double rate, uint64_t capacity) {
    const auto filter =
        ScalableFilter::create(filters::parameters(GetParam(), capacity, rate), kUnlimited);
    return filter ? "" : filter.error().message;
  };
  EXPECT_THAT(message(0, 10), StartsWith("ERR error rate"));
  EXPECT_THAT(message(1, 10), StartsWith("ERR error rate"));
  EXPECT_THAT(message(std::nan(""), 10), StartsWith("ERR error rate"));
  EXPECT_THAT(message(-1, 10), StartsWith("ERR error rate"));
  EXPECT_THAT(message(0.01, 0), StartsWith("ERR (capacity"));
}

TEST_P(ScalableFilterTest, CloneIsEqualAndSeparate) {
  for (const uint64_t items : {20, 5000}) {
    const auto filter = create(filters::parameters(GetParam(), 100, 0.01));
    for (uint64_t i = 0; i < items; ++i) filter->add(present(i), kUnlimited);
    const auto copy = filter->clone();
    ASSERT_NE(copy, nullptr);
    EXPECT_TRUE(same_bits(*filter, *copy));
    EXPECT_EQ(copy->item_count(), filter->item_count());
    EXPECT_EQ(copy->parameters(), filter->parameters());
    EXPECT_EQ(copy->layer_info(0).error_rate, filter->layer_info(0).error_rate);
    copy->add("only in the copy", kUnlimited);
    EXPECT_FALSE(filter->may_contain("only in the copy"));
  }
}

TEST_P(ScalableFilterTest, AssembledFilterEqualsTheOriginal) {
  for (const uint64_t items : {20, 3000}) {
    auto parameters = filters::parameters(GetParam(), 100, 0.01);
    if (GetParam() == ValkeyBloomLayout::kId) parameters.seed[5] ^= 0xFF;
    const auto filter = create(parameters);
    for (uint64_t i = 0; i < items; ++i) filter->add(present(i), kUnlimited);
    std::vector<LayerParts> parts;
    for (size_t i = 0; i < filter->layer_count(); ++i) {
      const LayerInfo info = filter->layer_info(i);
      auto bits = *BitArray::allocate(info.geometry.bit_count);
      std::ranges::copy(filter->layer_bits(i).bytes(), bits.bytes().begin());
      parts.push_back(
          {info.geometry, info.capacity, info.item_count, info.error_rate, std::move(bits)});
    }
    auto assembled = ScalableFilter::assemble(filter->parameters(), std::move(parts));
    ASSERT_TRUE(assembled) << assembled.error().message;
    ScalableFilter& other = **assembled;
    EXPECT_EQ(other.size_bytes(), filter->size_bytes());
    // The assembled filter grows like the original.
    for (uint64_t i = items; i < 2 * items; ++i) {
      EXPECT_EQ(other.add(present(i), kUnlimited), filter->add(present(i), kUnlimited));
    }
    EXPECT_TRUE(same_bits(*filter, other));
  }
}

TEST_P(ScalableFilterTest, InvalidPartsAreRejected) {
  const auto parameters = filters::parameters(GetParam(), 100, 0.01);
  const Geometry good = create(parameters)->layer_info(0).geometry;
  const auto assembles = [&](Geometry geometry, uint64_t bit_count, LayerParts part) {
    part.geometry = geometry;
    part.bits = *BitArray::allocate(bit_count);
    std::vector<LayerParts> parts;
    parts.push_back(std::move(part));
    return bool(ScalableFilter::assemble(parameters, std::move(parts)));
  };
  const auto part = [](uint64_t capacity, double rate) {
    LayerParts made;
    made.capacity = capacity;
    made.error_rate = rate;
    return made;
  };
  EXPECT_TRUE(assembles(good, good.bit_count, part(100, 0.005)));
  EXPECT_FALSE(assembles(good, good.bit_count + 512, part(100, 0.005)));
  EXPECT_FALSE(assembles(good, good.bit_count, part(0, 0.005)));
  EXPECT_FALSE(assembles(good, good.bit_count, part(100, std::nan(""))));
  Geometry bad = good;
  bad.hash_count = 0;
  EXPECT_FALSE(assembles(bad, bad.bit_count, part(100, 0.005)));
  bad.hash_count = 60000;
  EXPECT_FALSE(assembles(bad, bad.bit_count, part(100, 0.005)));
  EXPECT_FALSE(ScalableFilter::assemble(parameters, {}));
  if (GetParam() != NativeLayout::kId) return;
  bad = good;
  bad.lines_per_lookup = 0;
  EXPECT_FALSE(assembles(bad, bad.bit_count, part(100, 0.005)));
  bad = good;
  bad.bit_count = 500;
  EXPECT_FALSE(assembles(bad, bad.bit_count, part(100, 0.005)));
}

TEST_P(ScalableFilterTest, ReplayCountsEveryItemAndGrowsByCount) {
  const auto filter = create(filters::parameters(GetParam(), 10, 0.01));
  const ItemHash hash = filter->hasher()("same");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(filter->add_new(hash, kUnlimited), AddOutcome::kAdded);
  EXPECT_EQ(filter->item_count(), 10U);
  EXPECT_EQ(filter->layer_count(), 1U);
  EXPECT_EQ(filter->add_new(hash, kUnlimited), AddOutcome::kAdded);
  EXPECT_EQ(filter->layer_count(), 2U);
}

TEST_P(ScalableFilterTest, HashingBeforeTheAddGivesTheSameFilter) {
  const auto filter = create(filters::parameters(GetParam(), 100, 0.01));
  const ItemHasher hash = filter->hasher();
  EXPECT_EQ(filter->add(hash("foo"), kUnlimited), AddOutcome::kAdded);
  EXPECT_TRUE(filter->may_contain("foo"));
  EXPECT_TRUE(filter->may_contain(hash("foo")));
}

TEST(NativeScalableFilterTest, SmallFilterFitsInA48ByteObjectAndTwoLines) {
  EXPECT_EQ(sizeof(ScalableFilter), 48U);
  const auto filter = create(filters::parameters(NativeLayout::kId, 100, 0.01));
  EXPECT_EQ(filter->layer_bits(0).bytes().size(), 128U);
  EXPECT_EQ(filter->size_bytes(), 176U);
}

TEST(NativeScalableFilterTest, RightSizedFilterTakesUnderElevenBitsPerItem) {
  const uint64_t items = 10'000'000;
  EXPECT_LE(double(planned_bytes(filters::parameters(NativeLayout::kId, items, 0.01)) * 8) /
                double(items),
            10.9);
}

// Computes the layers of a growing filter and returns its bits per item.
double grown_bits_per_item(uint64_t capacity, uint64_t items) {
  const auto parameters = filters::parameters(NativeLayout::kId, capacity, 0.01);
  uint64_t bits = 0, total = 0;
  auto plan = plan_first_layer(parameters);
  for (uint32_t layer_count = 1; plan; ++layer_count) {
    bits += plan->geometry.bit_count;
    total += plan->capacity;
    if (total >= items) break;
    plan = plan_next_layer(parameters, layer_count, *plan);
  }
  return double(bits) / double(items);
}

TEST(NativeScalableFilterTest, GrownFiltersStayWithinTheirBitsPerItem) {
  EXPECT_LE(grown_bits_per_item(1000, 1'000'000), 20);
  EXPECT_LE(grown_bits_per_item(100, 1'000'000), 40);
}

TEST(NativeScalableFilterTest, SixGigabytesAreReservedAtOnce) {
  const double start_ms = support::cpu_ms();
  const auto filter = create(filters::parameters(NativeLayout::kId, 5'000'000'000, 0.01, 0));
  for (uint64_t i = 0; i < 100; ++i) filter->add(present(i), kUnlimited);
  const double elapsed_ms = support::cpu_ms() - start_ms;
  EXPECT_GT(filter->layer_info(0).geometry.bit_count, uint64_t{1} << 35);
  EXPECT_LT(elapsed_ms, 200);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(filter->may_contain(present(i)));
  EXPECT_EQ(observed_error_rate(*filter, 100), 0);
}

TEST(RedisBloomFilterTest, OldFormsKeepTheirFormWhenGrowing) {
  auto parameters = filters::parameters(RedisBloomLayout::kId, 100, 0.01);
  parameters.hashes_32_bits = true;
  parameters.rounds_to_power_of_two = true;
  const auto filter = create(parameters);
  for (uint64_t i = 0; i < 1000; ++i) filter->add(present(i), kUnlimited);
  EXPECT_GT(filter->layer_count(), 2U);
  for (size_t i = 0; i < filter->layer_count(); ++i) {
    const Geometry geometry = filter->layer_info(i).geometry;
    EXPECT_TRUE(geometry.is_rounded);
    EXPECT_EQ(geometry.bit_count & (geometry.bit_count - 1), 0U);
  }
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(filter->may_contain(present(i)));
}

TEST(RedisBloomFilterTest, BitsEqualARealFilter) {
  // RedisBloom 2.8.20 gave the expected bits for a default filter with the four items of this test.
  const auto filter = create(filters::parameters(RedisBloomLayout::kId, 100, 0.01));
  for (const char* item : {"a", "foo", "item:0", ""}) filter->add(item, kUnlimited);
  std::string hex;
  for (const std::byte byte : filter->layer_bits(0).bytes()) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[int(byte) >> 4];
    hex += kDigits[int(byte) & 15];
  }
  EXPECT_EQ(hex,
            "00102002000000000000000000000000080402000010000000000080000000000220000000000000"
            "00000000004000040000000000000000084000080000020000000009000000000000800000010000"
            "00000000000000000000088000000110000000000000002000800200000000000000004000000000"
            "000000000000000000042000000020000000008000000000");
}

TEST(ValkeyBloomFilterTest, BitsEqualARealFilter) {
  // valkey-bloom gave the expected bits for the three items of this test, with a fixed seed,
  // capacity 10 and error rate 1 %.
  const auto filter = create(filters::parameters(ValkeyBloomLayout::kId, 10, 0.01));
  for (const char* item : {"a", "foo", "item:0"}) filter->add(item, kUnlimited);
  const std::vector<int> expected = {0x84, 0xa0, 0xd0, 0x05, 0x04, 0x00,
                                     0x03, 0x18, 0x48, 0x09, 0x00, 0x24};
  std::vector<int> bytes;
  for (const std::byte byte : filter->layer_bits(0).bytes()) bytes.push_back(int(byte));
  EXPECT_EQ(bytes, expected);
}

TEST(ForeignFilterTest, SizeEqualsThatOfTheModule) {
  EXPECT_EQ(create(filters::parameters(ValkeyBloomLayout::kId, 100, 0.01))->size_bytes(), 384U);
  EXPECT_EQ(create(filters::parameters(RedisBloomLayout::kId, 100, 0.01))->size_bytes(), 240U);
}

TEST(NativeScalableFilterTest, UnusedSeedTakesNoMemory) {
  auto parameters = filters::parameters(NativeLayout::kId, 100, 0.01);
  parameters.seed.fill(7);
  EXPECT_EQ(create(parameters)->size_bytes(), 176U);
}

}  // namespace
}  // namespace core::bloom
