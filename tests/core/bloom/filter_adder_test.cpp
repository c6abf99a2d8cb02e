// SPDX-License-Identifier: MIT
//
// Adding items in groups gives the same filter and the same answers as adding them one by one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"
#include "tests/support/budget.h"
#include "tests/support/filters.h"

namespace core::bloom {
namespace {

constexpr uint64_t kAdderSeed = 35;
const UnlimitedMemory kEnough;

std::unique_ptr<ScalableFilter> make_filter(const FilterParameters& parameters) {
  return ScalableFilter::create(parameters, kEnough).value();
}

void expect_twins(const ScalableFilter& left, const ScalableFilter& right) {
  ASSERT_EQ(left.layer_count(), right.layer_count());
  for (size_t i = 0; i < left.layer_count(); ++i) {
    EXPECT_EQ(left.layer_info(i).item_count, right.layer_info(i).item_count) << "layer " << i;
    EXPECT_TRUE(std::ranges::equal(left.layer_bits(i).bytes(), right.layer_bits(i).bytes()))
        << "layer " << i;
  }
}

// Returns the hashes of `count` items, which are drawn at random from `different` possible items.
// So some items repeat, also within a group.
std::vector<ItemHash> some_hashes(const ItemHasher& hasher, size_t count, uint64_t different,
                                  std::mt19937_64& random) {
  std::vector<ItemHash> hashes;
  for (size_t i = 0; i < count; ++i) hashes.push_back(hasher(std::to_string(random() % different)));
  return hashes;
}

class FilterAdderTest : public testing::TestWithParam<LayoutId> {};
INSTANTIATE_TEST_SUITE_P(Layouts, FilterAdderTest, testing::ValuesIn(filters::kLayouts));

// Capacities vary, so that the filter grows at different items of a group.
TEST_P(FilterAdderTest, GroupsThatGrowEqualSingleAdds) {
  std::mt19937_64 random(kAdderSeed);
  for (const uint64_t capacity : {1, 3, 50, 127, 128, 129, 700}) {
    const auto parameters = filters::parameters(GetParam(), capacity, 0.03);
    const auto grouped = make_filter(parameters);
    const auto single = make_filter(parameters);
    for (int command = 0; command < 30; ++command) {
      const auto hashes = some_hashes(grouped->hasher(), 1 + random() % 200, 2500, random);
      std::vector<AddOutcome> outcomes(hashes.size());
      ASSERT_EQ(grouped->add_many(hashes, outcomes, kEnough), hashes.size());
      for (size_t i = 0; i < hashes.size(); ++i) {
        ASSERT_EQ(outcomes[i], single->add(hashes[i], kEnough)) << "capacity " << capacity;
      }
    }
    EXPECT_GT(grouped->layer_count(), 1U);
    expect_twins(*grouped, *single);
  }
}

// The result of a lookup replaces the lookups of the add that follows. Commands have more items
// than a group, and items repeat, so later groups meet items that the same command has added.
TEST_P(FilterAdderTest, AddsAfterALookupEqualSingleAdds) {
  std::mt19937_64 random(kAdderSeed);
  for (const uint64_t capacity : {1, 50, 128, 700}) {
    const auto parameters = filters::parameters(GetParam(), capacity, 0.03);
    const auto looked_up = make_filter(parameters);
    const auto single = make_filter(parameters);
    for (int command = 0; command < 20; ++command) {
      const auto hashes = some_hashes(single->hasher(), 1 + random() % 400, 4000, random);
      std::array<bool, 400> found{};
      looked_up->may_contain_many(hashes, found);
      std::vector<AddOutcome> outcomes(hashes.size());
      ASSERT_EQ(looked_up->add_many(hashes, outcomes, kEnough, found), hashes.size());
      for (size_t i = 0; i < hashes.size(); ++i) {
        ASSERT_EQ(outcomes[i], single->add(hashes[i], kEnough)) << "capacity " << capacity;
      }
      const auto one = some_hashes(single->hasher(), 1, 4000, random).front();
      const AddOutcome outcome =
          looked_up->may_contain(one) ? AddOutcome::kPresent : looked_up->add_new(one, kEnough);
      ASSERT_EQ(outcome, single->add(one, kEnough)) << "capacity " << capacity;
    }
    EXPECT_GT(single->layer_count(), 1U);
    expect_twins(*looked_up, *single);
  }
}

// A present item gets its answer even if the filter has no room for new items.
TEST_P(FilterAdderTest, GroupsWithoutRoomEqualSingleAdds) {
  const support::Budget nothing(0);
  std::mt19937_64 random(kAdderSeed);
  for (const uint32_t expansion : {0, 2}) {
    const auto parameters = filters::parameters(GetParam(), 100, 0.01, expansion);
    const auto grouped = make_filter(parameters);
    const auto single = make_filter(parameters);
    for (int command = 0; command < 10; ++command) {
      const auto hashes = some_hashes(grouped->hasher(), 64, 150, random);
      std::vector<AddOutcome> outcomes(hashes.size());
      const size_t done = grouped->add_many(hashes, outcomes, nothing);
      for (size_t i = 0; i < done; ++i) {
        ASSERT_EQ(outcomes[i], single->add(hashes[i], nothing)) << "expansion " << expansion;
      }
      EXPECT_TRUE(done == hashes.size() || outcomes[done - 1] == AddOutcome::kFull);
    }
    EXPECT_EQ(grouped->layer_count(), 1U);
    expect_twins(*grouped, *single);
  }
}

TEST_P(FilterAdderTest, ReplayedGroupsEqualReplayedItems) {
  std::mt19937_64 random(kAdderSeed);
  for (const uint64_t capacity : {1, 50, 128, 700}) {
    const auto parameters = filters::parameters(GetParam(), capacity, 0.03);
    const auto grouped = make_filter(parameters);
    const auto single = make_filter(parameters);
    for (int command = 0; command < 20; ++command) {
      const auto hashes = some_hashes(grouped->hasher(), 1 + random() % 200, 1u << 30, random);
      std::vector<AddOutcome> outcomes(hashes.size());
      grouped->replay_many(hashes, outcomes, kEnough);
      for (size_t i = 0; i < hashes.size(); ++i) {
        ASSERT_EQ(outcomes[i], single->add_new(hashes[i], kEnough)) << "capacity " << capacity;
      }
    }
    expect_twins(*grouped, *single);
  }
}

TEST(WindowAdderTest, ReplayedGroupsRotateAsReplayedItems) {
  std::mt19937_64 random(kAdderSeed);
  auto parameters = filters::parameters(NativeLayout::kId, 90, 0.01);
  parameters.window = {.length = 100, .unit = WindowUnit::kItems, .generations = 3};
  const auto grouped = make_filter(parameters);
  const auto single = make_filter(parameters);
  for (int command = 0; command < 20; ++command) {
    const auto hashes = some_hashes(grouped->hasher(), 1 + random() % 200, 1u << 30, random);
    std::vector<AddOutcome> outcomes(hashes.size());
    grouped->replay_many(hashes, outcomes, kEnough);
    for (size_t i = 0; i < hashes.size(); ++i) {
      ASSERT_EQ(outcomes[i], single->add_new(hashes[i], kEnough));
    }
  }
  EXPECT_GT(grouped->window()->newest().ordinal, 3);
  EXPECT_EQ(grouped->window()->newest().ordinal, single->window()->newest().ordinal);
  expect_twins(*grouped, *single);
}

}  // namespace
}  // namespace core::bloom
