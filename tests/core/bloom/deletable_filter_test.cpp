// SPDX-License-Identifier: MIT
//
// Guarantees of filters with deletion. Each item whose add returned 1 and that was not deleted is
// found, whatever happened in between. A replay gives the same bytes. Growth is bounded.
//
// BLOOMERY_MODEL_OPERATIONS=100000000 runs the model test at full length.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"
#include "tests/support/budget.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"

namespace core::bloom {
namespace {

constexpr uint64_t kModelSeed = 20261122;
const UnlimitedMemory kNoLimit;

std::string present_item(uint64_t number) {
  return "present:" + std::to_string(number);
}

using FilterOwner = std::unique_ptr<ScalableFilter>;

FilterOwner deletable(LayoutId layout, uint64_t capacity, double error_rate,
                      uint32_t expansion = 2) {
  auto filter = ScalableFilter::create(filters::parameters(layout, capacity, error_rate, expansion),
                                       kNoLimit);
  EXPECT_TRUE(filter) << filter.error().message;
  return std::move(filter.value());
}

void expect_same(const ScalableFilter& left, const ScalableFilter& right) {
  ASSERT_EQ(left.layer_count(), right.layer_count());
  EXPECT_EQ(left.parameters(), right.parameters());
  for (size_t i = 0; i < left.layer_count(); ++i) {
    const LayerInfo one = left.layer_info(i);
    const LayerInfo other = right.layer_info(i);
    EXPECT_EQ(one.capacity, other.capacity);
    EXPECT_EQ(one.item_count, other.item_count);
    EXPECT_EQ(one.error_rate, other.error_rate);
    EXPECT_EQ(one.geometry, other.geometry);
    EXPECT_TRUE(std::ranges::equal(left.layer_bits(i).bytes(), right.layer_bits(i).bytes())) << i;
  }
}

// Rebuilds the filter from the fields that files store.
FilterOwner reassembled(const ScalableFilter& filter) {
  std::vector<LayerParts> parts;
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerInfo info = filter.layer_info(i);
    parts.push_back({info.geometry, info.capacity, info.item_count, info.error_rate,
                     *filter.layer_bits(i).clone()});
  }
  auto made = ScalableFilter::assemble(filter.parameters(), std::move(parts));
  EXPECT_TRUE(made) << made.error().message;
  return std::move(made.value());
}

// A filter, the items that it must find, and a replica of the filter. The replica receives only the
// operations that changed the filter.
class Model {
 public:
  Model(LayoutId layout, uint64_t capacity, double error_rate)
      : filter_(deletable(layout, capacity, error_rate)),
        replica_(deletable(layout, capacity, error_rate)),
        hash_(filter_->hasher()),
        is_mine_(6 * capacity),
        may_stay_(layout != kFingerprintLayout) {}

  // One operation on a random item. Most operations are adds while the model grows, deletions while
  // it shrinks.
  void step() {
    const bool grows = steps_++ / (2 * is_mine_.size()) % 2 == 0;
    const size_t item = random_() % is_mine_.size();
    const uint64_t chance = random_() % 100;
    if (chance < (grows ? 55U : 15U)) return add(item);
    if (chance < 80) return remove(item);
    if (is_mine_[item]) {
      EXPECT_TRUE(filter_->may_contain(hash_of(item))) << item << message();
    }
  }

  void check_all() {
    uint64_t count = 0;
    for (size_t item = 0; item < is_mine_.size(); ++item) {
      count += is_mine_[item];
      if (is_mine_[item]) {
        ASSERT_TRUE(filter_->may_contain(hash_of(item))) << item << message();
      }
    }
    if (!may_stay_) {
      EXPECT_EQ(filter_->item_count(), count) << message();
    }
    expect_same(*filter_, *replica_);
  }

  void reload() { filter_ = reassembled(*filter_); }
  size_t layers_most() const { return layers_most_; }

 private:
  ItemHash hash_of(size_t item) const { return hash_(std::to_string(item)); }
  std::string message() const {
    return " after " + std::to_string(steps_) + " steps, seed " + std::to_string(kModelSeed);
  }

  void add(size_t item) {
    const AddOutcome outcome = filter_->add(hash_of(item), kNoLimit);
    if (is_mine_[item]) {
      EXPECT_EQ(outcome, AddOutcome::kPresent) << item << message();
    }
    if (outcome != AddOutcome::kAdded) return;
    is_mine_[item] = true;
    layers_most_ = std::max(layers_most_, filter_->layer_count());
    EXPECT_EQ(replica_->add_new(hash_of(item), kNoLimit), AddOutcome::kAdded);
  }

  void remove(size_t item) {
    if (!is_mine_[item]) return;
    const Removal removal = filter_->remove(hash_of(item));
    EXPECT_NE(removal, Removal::kAbsent) << item << message();
    is_mine_[item] = false;
    if (removal == Removal::kGone) {
      EXPECT_EQ(replica_->remove(hash_of(item)), Removal::kGone);
    } else {
      EXPECT_TRUE(may_stay_) << item << message();
    }
  }

  FilterOwner filter_;
  FilterOwner replica_;
  ItemHasher hash_;
  std::vector<bool> is_mine_;
  bool may_stay_;
  std::mt19937_64 random_{kModelSeed};
  uint64_t steps_ = 0;
  size_t layers_most_ = 0;
};

class DeletableFilterTest : public testing::TestWithParam<LayoutId> {};
INSTANTIATE_TEST_SUITE_P(Layouts, DeletableFilterTest, testing::ValuesIn([] {
                           std::vector<LayoutId> layouts;
                           for (const LayoutRow& row : kLayoutRows) {
                             if (row.clears_bits) layouts.push_back(row.id);
                           }
                           return layouts;
                         }()));

TEST_P(DeletableFilterTest, ItemsAddedAndNotDeletedAreFound) {
  RecordProperty("seed", std::to_string(kModelSeed));
  const char* const asked = std::getenv("BLOOMERY_MODEL_OPERATIONS");
  const uint64_t operations =
      asked != nullptr ? std::strtoull(asked, nullptr, 10) : support::rounds(600'000, 60'000);
  for (const uint64_t capacity : {3, 100, 5'000}) {
    Model model(GetParam(), capacity, 0.02);
    const uint64_t steps = operations / 3;
    const uint64_t check_every = std::max<uint64_t>(steps / 40, 1);
    for (uint64_t i = 1; i <= steps; ++i) {
      model.step();
      if (i % check_every != 0) continue;
      model.check_all();
      // A reloaded filter must continue like the original.
      if (i / check_every % 3 == 0) model.reload();
      if (HasFatalFailure()) return;
    }
    EXPECT_GE(model.layers_most(), 2U) << capacity;
  }
}

TEST_P(DeletableFilterTest, FixedFilterIsFullUntilADeletion) {
  const auto filter = deletable(GetParam(), 1000, 0.001, 0);
  uint64_t next = 0;
  while (filter->add(present_item(next), kNoLimit) != AddOutcome::kFull) ++next;
  EXPECT_EQ(filter->layer_count(), 1U);
  EXPECT_GE(filter->item_count(), 990U);
  const auto before = filter->clone();
  EXPECT_EQ(filter->add(present_item(next), kNoLimit), AddOutcome::kFull);
  EXPECT_EQ(filter->add_new(filter->hasher()(present_item(next)), kNoLimit), AddOutcome::kFull);
  expect_same(*filter, *before);
  for (uint64_t i = 0; i < 500; ++i) filter->remove(filter->hasher()(present_item(i)));
  EXPECT_EQ(filter->add(present_item(next), kNoLimit), AddOutcome::kAdded);
}

TEST_P(DeletableFilterTest, RejectedGrowthChangesNothing) {
  const auto filter = deletable(GetParam(), 1000, 0.001);
  uint64_t next = 0;
  const support::Budget none(0);
  while (filter->add(present_item(next), none) != AddOutcome::kCannotGrow) ++next;
  const auto before = filter->clone();
  EXPECT_EQ(filter->add(present_item(next), none), AddOutcome::kCannotGrow);
  expect_same(*filter, *before);
}

TEST_P(DeletableFilterTest, BatchRemovalsEqualSingleRemovals) {
  const auto many = deletable(GetParam(), 300, 0.05);
  for (uint64_t i = 0; i < 3000; ++i) many->add(present_item(i), kNoLimit);
  ASSERT_GE(many->layer_count(), 3U);
  const auto single = many->clone();
  const ItemHasher hash = many->hasher();
  std::mt19937_64 random(kModelSeed);
  for (int batch = 0; batch < 20; ++batch) {
    std::vector<ItemHash> hashes;
    for (int i = 0; i < 200; ++i) hashes.push_back(hash(present_item(random() % 3500)));
    std::vector<Removal> outcomes(hashes.size());
    many->remove_many(hashes, outcomes);
    for (size_t i = 0; i < hashes.size(); ++i) {
      ASSERT_EQ(outcomes[i], single->remove(hashes[i])) << "seed " << kModelSeed;
    }
    expect_same(*many, *single);
  }
}

// The last counted item of a layer may be deleted within a batch of deletions, while bits of the
// layer remain set. Later deletions of the batch must not find their items in this layer.
TEST_P(DeletableFilterTest, LayersEmptiedWithinABatchAreDropped) {
  constexpr int kFilters = support::rounds(2000, 200);
  std::mt19937_64 random(kModelSeed);
  uint64_t ended = 0;
  for (int round = 0; round < kFilters; ++round) {
    FilterParameters parameters =
        filters::parameters(GetParam(), 10 + random() % 50, 0.25, 1 + random() % 2);
    if (layout_row(GetParam()).takes_region_bits) parameters.region_bits = 2;
    const auto many = ScalableFilter::create(parameters, kNoLimit).value();
    const ItemHasher hash = many->hasher();
    for (int batch = 0; batch < 3; ++batch) {
      for (int i = 0; i < 100; ++i) many->add(present_item(random() % 100), kNoLimit);
      const auto single = many->clone();
      const size_t layers = many->layer_count();
      std::vector<ItemHash> hashes;
      for (int i = 0; i < 300; ++i) hashes.push_back(hash(present_item(random() % 100)));
      std::vector<Removal> outcomes(hashes.size());
      many->remove_many(hashes, outcomes);
      ended += layers - many->layer_count();
      for (size_t i = 0; i < hashes.size(); ++i) {
        ASSERT_EQ(outcomes[i], single->remove(hashes[i])) << "filter " << round << ", item " << i;
      }
      expect_same(*many, *single);
    }
  }
  EXPECT_GE(ended, uint64_t{kFilters});
}

// Only a deletion with effect is journalled. A deletion without effect must not drop a layer, even
// one whose item count is zero.
TEST(DeletableFilterLayersTest, RemovalWithoutEffectDropsNoLayer) {
  FilterParameters parameters = filters::parameters(RegionLayout::kRow.id, 200, 0.01, 1);
  parameters.region_bits = kMaxRegionBits;
  const auto grown = ScalableFilter::create(parameters, kNoLimit).value();
  for (uint64_t i = 0; i < 300; ++i) grown->add(present_item(i), kNoLimit);
  ASSERT_EQ(grown->layer_count(), 2U);
  std::vector<LayerParts> parts;
  for (size_t i = 0; i < 2; ++i) {
    const LayerInfo info = grown->layer_info(i);
    parts.push_back({info.geometry, info.capacity, i == 0 ? 0 : info.item_count, info.error_rate,
                     *grown->layer_bits(i).clone()});
  }
  const auto filter = ScalableFilter::assemble(parameters, std::move(parts)).value();
  const auto before = filter->clone();
  std::vector<ItemHash> staying;
  for (uint64_t i = 0; i < 200; ++i) {
    const ItemHash hash = filter->hasher()(present_item(i));
    const auto trial = before->clone();
    if (trial->remove(hash) == Removal::kStays) staying.push_back(hash);
  }
  ASSERT_FALSE(staying.empty());
  for (const ItemHash& hash : staying) EXPECT_EQ(filter->remove(hash), Removal::kStays);
  expect_same(*filter, *before);
  std::vector<Removal> outcomes(staying.size());
  filter->remove_many(staying, outcomes);
  expect_same(*filter, *before);
}

class FingerprintFilterTest : public testing::Test {
 protected:
  // Adds the items [from, to) and returns those whose add returned 1.
  static std::vector<uint64_t> add_items(ScalableFilter& filter, uint64_t from, uint64_t to) {
    std::vector<uint64_t> added;
    for (uint64_t i = from; i < to; ++i) {
      if (filter.add(present_item(i), kNoLimit) == AddOutcome::kAdded) added.push_back(i);
    }
    return added;
  }
  static void remove_items(ScalableFilter& filter, const std::vector<uint64_t>& items) {
    for (const uint64_t item : items) {
      ASSERT_EQ(filter.remove(filter.hasher()(present_item(item))), Removal::kGone) << item;
    }
  }
};

TEST_F(FingerprintFilterTest, EmptyOlderLayersAreDropped) {
  const auto filter = deletable(kFingerprintLayout, 1000, 0.001);
  const auto first = add_items(*filter, 0, 1000);
  const auto later = add_items(*filter, 1000, 6000);
  ASSERT_EQ(filter->layer_count(), 3U);
  const LayerInfo second = filter->layer_info(1);
  remove_items(*filter, first);
  // Some of the first thousand items may have been false positives, which the filter does not
  // store. The first layer then holds some later items instead, which must also be removed.
  remove_items(*filter, {later.begin(), later.begin() + 100});
  ASSERT_EQ(filter->layer_count(), 2U);
  EXPECT_EQ(filter->layer_info(0).capacity, second.capacity);
  EXPECT_EQ(filter->parameters().capacity, second.capacity);
  expect_same(*filter, *reassembled(*filter));
  // The caller of the deletion must take the dropped layers, and can free them while no client
  // waits.
  const auto dropped = filter->take_dropped();
  ASSERT_NE(dropped, nullptr);
  EXPECT_EQ(dropped->layer_count(), 1U);
  EXPECT_EQ(dropped->capacity(), 1000U);
  EXPECT_EQ(filter->take_dropped(), nullptr);
  remove_items(*filter, {later.begin() + 100, later.end()});
  EXPECT_EQ(filter->layer_count(), 1U);
  EXPECT_EQ(filter->item_count(), 0U);
  EXPECT_EQ(filter->layer_bits(0).count_ones(), 0U);
}

TEST_F(FingerprintFilterTest, ChurnLeavesNoResidue) {
  constexpr uint64_t kItems = support::rounds(40'000, 4'000);
  constexpr double kRate = 0.01;
  const auto filter = deletable(kFingerprintLayout, kItems / 4, kRate);
  auto live = add_items(*filter, 0, kItems);
  for (uint64_t round = 1; round <= 10; ++round) {
    // Adds new items and removes the oldest ones in small parts, so that the filter stays about
    // full.
    std::vector<uint64_t> next;
    for (uint64_t part = 0; part < 20; ++part) {
      const auto size = static_cast<ptrdiff_t>(live.size() / 20);
      const auto begin = live.begin() + static_cast<ptrdiff_t>(part) * size;
      remove_items(*filter, {begin, part == 19 ? live.end() : begin + size});
      const uint64_t from = round * kItems + part * (kItems / 20);
      const auto added = add_items(*filter, from, from + kItems / 20);
      next.insert(next.end(), added.begin(), added.end());
    }
    live = next;
    ASSERT_EQ(filter->item_count(), live.size());
    // The last layer contains all items of the filter, and has room for twice as many. Older layers
    // may not have been dropped yet.
    ASSERT_LE(filter->layer_count(), 3U) << round;
    ASSERT_LE(filter->capacity(), 6 * kItems) << round;
  }
  constexpr uint64_t kProbes = 300'000;
  uint64_t found = 0;
  for (uint64_t i = 0; i < kProbes; ++i) found += filter->may_contain("absent" + std::to_string(i));
  EXPECT_LE(double(found) / kProbes, kRate + 3 * std::sqrt(kRate / kProbes));
  remove_items(*filter, live);
  EXPECT_EQ(filter->layer_count(), 1U);
  EXPECT_EQ(filter->layer_bits(0).count_ones(), 0U);
}

TEST_F(FingerprintFilterTest, TooLowErrorRateIsReported) {
  for (const uint32_t expansion : {0U, 2U}) {
    const auto filter = ScalableFilter::create(
        filters::parameters(kFingerprintLayout, 100, 1e-18, expansion), kNoLimit);
    ASSERT_FALSE(filter);
    EXPECT_NE(filter.error().message.find("error rate"), std::string::npos)
        << filter.error().message;
  }
}

TEST_F(FingerprintFilterTest, BigTablesAreReservedAtOnce) {
  const auto filter = deletable(kFingerprintLayout, 3'000'000'000, 0.01, 0);
  EXPECT_GT(filter->size_bytes(), uint64_t{3} << 30);
  const auto added = add_items(*filter, 0, 100);
  const auto copy = filter->clone();
  ASSERT_NE(copy, nullptr);
  for (const uint64_t item : added) EXPECT_TRUE(copy->may_contain(present_item(item)));
  remove_items(*filter, added);
}

}  // namespace
}  // namespace core::bloom
