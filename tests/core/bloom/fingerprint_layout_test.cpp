// SPDX-License-Identifier: MIT
#include "core/bloom/fingerprint_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/bloom/layer.h"
#include "tests/support/sanitized.h"

namespace core::bloom {
namespace {

constexpr uint64_t kTableSeed = 20260711;

ItemHash table_item(uint64_t kind, uint64_t number) {
  char item[16];
  std::memcpy(item, &kind, 8);
  std::memcpy(item + 8, &number, 8);
  return hash_native({item, sizeof(item)});
}

Layer table_for(uint64_t capacity, double error_rate) {
  return *Layer::create(*FingerprintLayout::plan({}, capacity, error_rate), ArraySharing::kPrivate);
}

std::vector<std::byte> bytes_of(const Layer& layer) {
  const auto bytes = layer.bits().bytes();
  return {bytes.begin(), bytes.end()};
}

// Adds `count` new items, numbered from `first` on. Returns the number of items that
// did not fit in the table.
uint64_t fill(Layer& layer, uint64_t first, uint64_t count) {
  uint64_t without_room = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    without_room +=
        layer.insert<FingerprintLayout>(table_item(kTableSeed, i)) == Insertion::kNoRoom;
  }
  return without_room;
}

TEST(FingerprintLayoutTest, DeletedItemsLeaveNoResidue) {
  for (const double rate : {0.25, 0.01, 1e-4, 1e-9, 0x1p-56}) {
    Layer layer = table_for(10'000, rate);
    std::vector<uint64_t> added;
    for (uint64_t i = 0; i < 10'000; ++i) {
      if (layer.mark<FingerprintLayout>(table_item(kTableSeed, i))) added.push_back(i);
    }
    EXPECT_EQ(layer.item_count(), added.size());
    std::ranges::shuffle(added, std::mt19937_64(kTableSeed));
    for (size_t i = 0; i < added.size(); ++i) {
      const ItemHash hash = table_item(kTableSeed, added[i]);
      ASSERT_TRUE(layer.check<FingerprintLayout>(hash)) << rate << " lost " << added[i];
      ASSERT_EQ(layer.remove<FingerprintLayout>(hash), Removal::kGone);
    }
    EXPECT_EQ(layer.item_count(), 0U);
    EXPECT_EQ(layer.bits().count_ones(), 0U) << rate;
    EXPECT_EQ(layer.remove<FingerprintLayout>(table_item(kTableSeed, 1)), Removal::kAbsent);
  }
}

TEST(FingerprintLayoutTest, FullTableIsUnchangedByAnInsertion) {
  for (const uint64_t capacity : {1, 10, 500, 20'000}) {
    Layer layer = table_for(capacity, 1e-4);
    uint64_t next = 0;
    uint64_t refused = 0;
    while (refused < 20) {
      const auto before = bytes_of(layer);
      const uint64_t count = layer.item_count();
      const ItemHash hash = table_item(kTableSeed, next++);
      if (layer.insert<FingerprintLayout>(hash) != Insertion::kNoRoom) continue;
      ++refused;
      ASSERT_EQ(bytes_of(layer), before);
      ASSERT_EQ(layer.item_count(), count);
      ASSERT_FALSE(layer.insert_new<FingerprintLayout>(hash));
      ASSERT_EQ(bytes_of(layer), before);
    }
    EXPECT_GE(layer.item_count(), capacity);
    // After an item was deleted, another item fits.
    EXPECT_EQ(layer.remove<FingerprintLayout>(table_item(kTableSeed, 0)), Removal::kGone);
    EXPECT_TRUE(layer.mark<FingerprintLayout>(table_item(kTableSeed, 0)));
  }
}

TEST(FingerprintLayoutTest, TablesOfAllSizesReachTheirCapacity) {
  for (const double rate : {0.05, 0.01, 0.001, 1e-6, 1e-12}) {
    for (uint64_t capacity = 1; capacity < 200'000; capacity += 1 + capacity / 3) {
      const uint64_t tables = std::max<uint64_t>(1, support::rounds(60'000, 6'000) / capacity);
      for (uint64_t table = 0; table < tables; ++table) {
        Layer layer = table_for(capacity, rate);
        ASSERT_EQ(fill(layer, table << 32, capacity), 0U)
            << capacity << " at " << rate << " seed " << kTableSeed;
      }
    }
  }
}

TEST(FingerprintLayoutTest, SmallTablesKeepTheirRateOnAverage) {
  constexpr uint64_t kTables = support::rounds(300, 60);
  constexpr uint64_t kProbes = 4000;
  for (const uint64_t capacity : {1, 2, 5, 20, 100, 300}) {
    for (const double rate : {0.1, 0.01, 0.001}) {
      uint64_t found = 0;
      double predicted = 0;
      for (uint64_t table = 0; table < kTables; ++table) {
        Layer layer = table_for(capacity, rate);
        fill(layer, table << 32, capacity);
        for (uint64_t i = 0; i < kProbes; ++i) {
          found += layer.check<FingerprintLayout>(table_item(kTableSeed + 1, (table << 32) + i));
        }
        predicted +=
            FingerprintLayout::predicted_error(layer.geometry(), layer.item_count()) / kTables;
      }
      const double probes = double{kTables} * kProbes;
      const double slack = 4 * std::sqrt(rate / probes) + 0.01 * rate;
      EXPECT_LE(double(found) / probes, rate + slack) << capacity << " at " << rate;
      EXPECT_NEAR(double(found) / probes, predicted, slack) << capacity << " at " << rate;
    }
  }
}

TEST(FingerprintLayoutTest, TenRoundsOfChurnKeepTheErrorRate) {
  constexpr uint64_t kItems = support::rounds(50'000, 5'000);
  constexpr double kRate = 0.01;
  Layer layer = table_for(kItems, kRate);
  ASSERT_EQ(fill(layer, 0, kItems), 0U);
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t i = round * kItems; i < (round + 1) * kItems; ++i) {
      layer.remove<FingerprintLayout>(table_item(kTableSeed, i));
      ASSERT_NE(layer.insert<FingerprintLayout>(table_item(kTableSeed, i + kItems)),
                Insertion::kNoRoom);
    }
  }
  constexpr uint64_t kProbes = 400'000;
  uint64_t found = 0;
  for (uint64_t i = 0; i < kProbes; ++i) {
    found += layer.check<FingerprintLayout>(table_item(kTableSeed + 1, i));
  }
  const double slack = 3 * std::sqrt(kRate / kProbes);
  EXPECT_LE(double(found) / kProbes, kRate + slack) << "seed " << kTableSeed;
  EXPECT_LE(layer.item_count(), kItems);
}

TEST(FingerprintLayoutTest, GroupLookupsEqualSingleLookups) {
  // Tests an array that fits into the cache, and a larger one whose lines are prefetched.
  for (const uint64_t capacity : {2'000, 300'000}) {
    for (const double rate : {0.05, 1e-5}) {
      Layer layer = table_for(capacity, rate);
      fill(layer, 0, capacity);
      const ArrayView view = layer.view();
      for (uint64_t start = 0; start < 2 * capacity; start += 100) {
        std::vector<ItemHash> hashes;
        for (uint64_t i = 0; i < 100; ++i) {
          hashes.push_back(table_item(kTableSeed, (start + i) * 997));
        }
        std::array<bool, 100> found{};
        found[7] = true;
        FingerprintLayout::check_group({&view, 1}, hashes, found);
        for (size_t i = 0; i < hashes.size(); ++i) {
          ASSERT_EQ(found[i], i == 7 || layer.check<FingerprintLayout>(hashes[i]));
        }
      }
    }
  }
}

TEST(FingerprintLayoutTest, GroupRemovalsEqualSingleRemovals) {
  for (const uint64_t capacity : {2'000, 300'000}) {
    Layer group = table_for(capacity, 0.05);
    fill(group, 0, capacity);
    Layer single = *group.clone();
    for (uint64_t start = 0; start < 2 * capacity; start += 50) {
      std::vector<ItemHash> hashes;
      // Removes each item twice. The second removal fails unless another item has the same
      // fingerprint and buckets.
      for (uint64_t i = 0; i < 100; ++i) hashes.push_back(table_item(kTableSeed, start + i % 50));
      std::vector<Removal> outcomes(hashes.size(), Removal::kAbsent);
      outcomes[3] = Removal::kStays;
      group.remove_group<FingerprintLayout>(hashes, outcomes, false);
      for (size_t i = 0; i < hashes.size(); ++i) {
        const Removal expected =
            i == 3 ? Removal::kStays : single.remove<FingerprintLayout>(hashes[i]);
        ASSERT_EQ(outcomes[i], expected);
      }
    }
    EXPECT_EQ(group.item_count(), single.item_count());
    EXPECT_EQ(bytes_of(group), bytes_of(single));
  }
}

TEST(FingerprintLayoutTest, InvalidShapesAreRejected) {
  const Geometry good = *FingerprintLayout::size(1000, 0.01);
  EXPECT_TRUE(FingerprintLayout::is_valid(good));
  for (const auto& [slots, bits] : {std::pair{1, 10}, {9, 10}, {4, 1}, {2, 61}, {4, 31}, {0, 0}}) {
    Geometry bad = good;
    bad.hash_count = static_cast<uint16_t>(slots);
    bad.cell_bits = static_cast<uint16_t>(bits);
    EXPECT_FALSE(FingerprintLayout::is_valid(bad)) << slots << " of " << bits;
  }
  Geometry bad = good;
  bad.lines_per_lookup = 1;
  EXPECT_FALSE(FingerprintLayout::is_valid(bad));
  bad = good;
  bad.bit_count += 64;
  EXPECT_FALSE(FingerprintLayout::is_valid(bad));
}

TEST(FingerprintLayoutTest, RatesBelowTheMinimumAreRejected) {
  EXPECT_TRUE(FingerprintLayout::size(1000, FingerprintLayout::kMinErrorRate));
  EXPECT_FALSE(FingerprintLayout::size(1000, FingerprintLayout::kMinErrorRate / 2));
  EXPECT_FALSE(FingerprintLayout::size(kMaxLayerCapacity + 1, 0.01));
  EXPECT_TRUE(FingerprintLayout::size(kMaxLayerCapacity, 0.01));
  FilterParameters parameters;
  parameters.error_rate = 1e-17;
  EXPECT_EQ(FingerprintLayout::layer_error_rate(parameters, 0), 0);
}

}  // namespace
}  // namespace core::bloom
