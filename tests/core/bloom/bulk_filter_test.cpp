// SPDX-License-Identifier: MIT
//
// Compares a bulk filter with a ScalableFilter that received the same items one by one.
#include "core/bloom/bulk_filter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/bloom/layouts.h"
#include "tests/support/budget.h"
#include "tests/support/error_matcher.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"

namespace core::bloom {
namespace {

const UnlimitedMemory kUnlimitedBulk;

std::vector<std::string> items_with_duplicates(size_t count, uint64_t different, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> items;
  for (size_t i = 0; i < count; ++i) items.push_back(fmt::format("item:{}", random() % different));
  return items;
}

std::unique_ptr<ScalableFilter> one_by_one(const FilterParameters& parameters,
                                           const std::vector<std::string>& items) {
  auto filter = *ScalableFilter::create(parameters, kUnlimitedBulk);
  for (const std::string& item : items) filter->add(item, kUnlimitedBulk);
  return filter;
}

std::unique_ptr<ScalableFilter> at_once(const FilterParameters& parameters, unsigned threads,
                                        size_t piece_size, const std::vector<std::string>& items) {
  ThreadTeam team(threads);
  auto bulk = *BulkFilter::create(parameters, kUnlimitedBulk, team);
  const ItemHasher hash = bulk->hasher();
  std::vector<ItemHash> hashes;
  for (const std::string& item : items) hashes.push_back(hash(item));
  std::span<const ItemHash> rest(hashes);
  while (!rest.empty()) {
    const auto piece = rest.first(std::min(piece_size, rest.size()));
    const auto added = bulk->add(piece);
    EXPECT_TRUE(added) << added.error().message;
    rest = rest.subspan(piece.size());
  }
  const uint64_t item_count = bulk->item_count();
  auto filter = bulk->finish();
  EXPECT_EQ(filter->item_count(), item_count);
  return filter;
}

void expect_same(const ScalableFilter& left, const ScalableFilter& right) {
  EXPECT_EQ(left.parameters(), right.parameters());
  ASSERT_EQ(left.layer_count(), right.layer_count());
  for (size_t i = 0; i < left.layer_count(); ++i) {
    const LayerInfo& ours = left.layer_info(i);
    const LayerInfo& theirs = right.layer_info(i);
    EXPECT_EQ(ours.item_count, theirs.item_count) << "layer " << i;
    EXPECT_EQ(ours.capacity, theirs.capacity);
    EXPECT_EQ(ours.error_rate, theirs.error_rate);
    EXPECT_EQ(ours.geometry, theirs.geometry);
    EXPECT_TRUE(std::ranges::equal(left.layer_bits(i).bytes(), right.layer_bits(i).bytes()))
        << "layer " << i;
  }
}

class BulkFilterTest : public testing::TestWithParam<LayoutId> {};
INSTANTIATE_TEST_SUITE_P(Layouts, BulkFilterTest, testing::ValuesIn(filters::kLayouts));

constexpr int kItems = support::rounds(60'000, 12'000);

TEST_P(BulkFilterTest, EqualsItemsAddedOneByOne) {
  const auto items = items_with_duplicates(kItems, kItems * 2 / 3, 1);
  for (const double error_rate : {0.1, 0.01, 1e-6}) {
    const auto parameters = filters::parameters(GetParam(), kItems, error_rate);
    const auto twin = one_by_one(parameters, items);
    for (const unsigned threads : {1U, 2U, 3U, 8U}) {
      expect_same(*at_once(parameters, threads, items.size(), items), *twin);
    }
    expect_same(*at_once(parameters, 2, kItems / 8 + 277, items), *twin);
  }
}

TEST_P(BulkFilterTest, EqualsItemsAddedOneByOneWhileItGrows) {
  const auto items = items_with_duplicates(kItems, kItems * 3 / 4, 2);
  for (const uint64_t capacity : {100, kItems / 12, kItems / 3}) {
    const auto parameters = filters::parameters(GetParam(), capacity, 0.02);
    const auto twin = one_by_one(parameters, items);
    EXPECT_GT(twin->layer_count(), 1U);
    expect_same(*at_once(parameters, 3, items.size(), items), *twin);
    expect_same(*at_once(parameters, 2, kItems / 6, items), *twin);
  }
}

TEST_P(BulkFilterTest, FullFixedFilterIsAnError) {
  const auto items = items_with_duplicates(20000, 1 << 30, 3);
  ThreadTeam team(2);
  auto bulk =
      *BulkFilter::create(filters::parameters(GetParam(), 5000, 0.01, 0), kUnlimitedBulk, team);
  const ItemHasher hash = bulk->hasher();
  std::vector<ItemHash> hashes;
  for (const std::string& item : items) hashes.push_back(hash(item));
  const auto added = bulk->add(hashes);
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message, is_error("ERR", "full"));
}

TEST_P(BulkFilterTest, InsufficientMemoryIsAnError) {
  ThreadTeam team(2);
  const support::Budget little(10000);
  const auto refused =
      BulkFilter::create(filters::parameters(GetParam(), 1000000, 0.01), little, team);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("Insufficient memory"), std::string::npos);

  auto bulk = *BulkFilter::create(filters::parameters(GetParam(), 5000, 0.01), little, team);
  const ItemHasher hash = bulk->hasher();
  std::vector<ItemHash> hashes;
  for (const std::string& item : items_with_duplicates(20000, 1 << 30, 4)) {
    hashes.push_back(hash(item));
  }
  const auto added = bulk->add(hashes);
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("does not fit in memory"), std::string::npos);
}

TEST(BulkFilter, TooSmallErrorRateOfNextLayerIsAnError) {
  ThreadTeam team(1);
  FilterParameters parameters;
  parameters.error_rate = 5e-324;
  parameters.capacity = 1;
  auto bulk = *BulkFilter::create(parameters, kUnlimitedBulk, team);
  const ItemHasher hash = bulk->hasher();
  std::vector<ItemHash> hashes;
  for (const std::string& item : items_with_duplicates(1000, 1 << 30, 4)) {
    hashes.push_back(hash(item));
  }
  const auto added = bulk->add(hashes);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message, kNoNextLayer);
}

TEST(BulkFilter, InvalidParametersAreRejected) {
  ThreadTeam team(1);
  FilterParameters parameters;
  parameters.error_rate = 1;
  EXPECT_FALSE(BulkFilter::create(parameters, kUnlimitedBulk, team));
  parameters.error_rate = 0.01;
  parameters.capacity = 0;
  EXPECT_FALSE(BulkFilter::create(parameters, kUnlimitedBulk, team));
}

}  // namespace
}  // namespace core::bloom
