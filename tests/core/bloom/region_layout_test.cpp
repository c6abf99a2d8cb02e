// SPDX-License-Identifier: MIT
#include "core/bloom/region_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/bloom/arrays/bit_array.h"
#include "tests/support/sanitized.h"

namespace core::bloom {
namespace {

ItemHash hash_of(uint64_t number) {
  return hash_native(std::to_string(number));
}

// A single layer's array and geometry.
class Regions {
 public:
  Regions(uint64_t capacity, double error_rate, unsigned region_bits)
      : geometry_(*RegionLayout::size(capacity, error_rate, region_bits)),
        capacity_(capacity),
        bits_(*BitArray::allocate(geometry_.bit_count)) {}

  const Geometry& geometry() const { return geometry_; }
  const uint64_t* words() const { return bits_.words(); }
  std::span<const uint64_t> all_words() const { return {bits_.words(), geometry_.bit_count / 64}; }
  std::vector<uint64_t> copy() const { return {all_words().begin(), all_words().end()}; }
  bool is_sound() const { return RegionLayout::is_sound(bits_, geometry_, 0, Loaded::kWhole); }
  bool may_be_partly_loaded() const {
    return RegionLayout::is_sound(bits_, geometry_, 0, Loaded::kPartly);
  }

  Insertion insert(uint64_t number) {
    return RegionLayout::insert(bits_.words(), geometry_, capacity_, hash_of(number));
  }
  Removal remove(uint64_t number) {
    return RegionLayout::remove(bits_.words(), geometry_, hash_of(number));
  }
  bool check(uint64_t number) const {
    return RegionLayout::check(bits_.words(), geometry_, hash_of(number));
  }
  uint64_t& word(size_t index) { return bits_.words()[index]; }

 private:
  Geometry geometry_;
  uint64_t capacity_;
  BitArray bits_;
};

constexpr unsigned kRegionSizes[] = {1, 2, 3, 4, 10, 64, 255};

TEST(RegionLayoutTest, MemoryIsOneRthAboveAPlainFilter) {
  constexpr uint64_t kItems = 1000000;
  for (const unsigned r : kRegionSizes) {
    for (const double rate : {0.1, 0.01, 0.001, 1e-6}) {
      const auto plain = NativeLayout::size(kItems, rate);
      const auto own = RegionLayout::size(kItems, rate, r);
      ASSERT_TRUE(plain && own);
      EXPECT_TRUE(RegionLayout::is_valid(*own));
      const double ratio = double(own->bit_count) / double(plain->bit_count);
      // A line of this layout has fewer item bits than a native line, so the lines are filled less
      // evenly. The tolerance of 5 % allows for that.
      EXPECT_NEAR(ratio, 1 + 1.0 / r, 0.05 * (1 + 1.0 / r)) << r << " at " << rate;
    }
  }
}

TEST(RegionLayoutTest, ShapesOutOfRangeAreRejected) {
  EXPECT_FALSE(RegionLayout::size(100, 0.01, 0));
  EXPECT_FALSE(RegionLayout::size(100, 0.01, kMaxRegionBits + 1));
  EXPECT_FALSE(RegionLayout::size(kMaxLayerCapacity + 1, 0.01, 4));
  const Geometry sound = *RegionLayout::size(100, 0.01, 4);
  EXPECT_TRUE(RegionLayout::is_valid(sound));
  const auto with = [&](auto change) {
    Geometry changed = sound;
    change(changed);
    return RegionLayout::is_valid(changed);
  };
  EXPECT_FALSE(with([](Geometry& g) { g.bit_count += 64; }));
  EXPECT_FALSE(with([](Geometry& g) { g.bit_count = 192; }));
  EXPECT_FALSE(with([](Geometry& g) { g.cell_bits = 0; }));
  EXPECT_FALSE(with([](Geometry& g) { g.cell_bits = 256; }));
  EXPECT_FALSE(with([](Geometry& g) { g.lines_per_lookup = 0; }));
  EXPECT_FALSE(with([](Geometry& g) { g.lines_per_lookup = 17; }));
  EXPECT_FALSE(with([](Geometry& g) { g.hash_count = 8 * g.lines_per_lookup; }));
}

TEST(RegionLayoutTest, ErrorRateIsAsPredicted) {
  constexpr uint64_t kItems = 50000;
  constexpr unsigned kProbes = 400000;
  for (const unsigned r : {1U, 4U, 10U}) {
    for (const double rate : {0.05, 0.01, 0.001}) {
      Regions regions(kItems, rate, r);
      for (uint64_t i = 0; i < kItems; ++i) EXPECT_NE(regions.insert(i), Insertion::kNoRoom);
      unsigned found = 0;
      for (unsigned i = 0; i < kProbes; ++i) found += regions.check(1000000000 + i);
      const double measured = double(found) / kProbes;
      const double predicted = RegionLayout::predicted_error(regions.geometry(), kItems);
      const double slack = 5 * std::sqrt(predicted / kProbes);
      EXPECT_LE(predicted, rate);
      EXPECT_NEAR(measured, predicted, 0.05 * predicted + slack) << r << " at " << rate;
      const double now = RegionLayout::error_now(regions.words(), regions.geometry(), 0);
      EXPECT_NEAR(now, predicted, 0.05 * predicted) << r << " at " << rate;
      EXPECT_NEAR(RegionLayout::items_now(regions.words(), regions.geometry(), 0), kItems,
                  0.02 * kItems);
      EXPECT_TRUE(regions.is_sound());
    }
  }
}

double measured_residue(Regions& regions, uint64_t items) {
  std::vector<uint64_t> added;
  for (uint64_t i = 0; added.size() < items; ++i) {
    if (regions.insert(i) == Insertion::kAdded) added.push_back(i);
  }
  uint64_t stays = 0;
  for (const uint64_t item : added) stays += regions.remove(item) == Removal::kStays;
  for (const uint64_t item : added) stays -= regions.check(item);
  EXPECT_EQ(stays, 0U);
  EXPECT_TRUE(regions.is_sound());
  for (const uint64_t item : added) stays += regions.check(item);
  return double(stays) / double(items);
}

TEST(RegionLayoutTest, ResidueIsAsPredicted) {
  constexpr uint64_t kItems = support::rounds(40'000, 10'000);
  for (const unsigned r : {1U, 2U, 4U, 10U, 30U}) {
    for (const double rate : {0.01, 0.001}) {
      for (const double load : {0.25, 0.5, 0.6, 1.0}) {
        Regions regions(kItems, rate, r);
        const auto items = static_cast<uint64_t>(load * kItems);
        const double measured = measured_residue(regions, items);
        const double predicted = RegionLayout::predicted_residue(regions.geometry(), double(items));
        const double now = RegionLayout::residue_of(
            regions.geometry(), RegionLayout::flag_share_now(regions.words(), regions.geometry()));
        const double slack = 5 * std::sqrt(predicted / double(items)) + 1e-4;
        EXPECT_NEAR(measured, predicted, 0.1 * predicted + slack)
            << r << " at " << rate << ", load " << load;
        EXPECT_NEAR(now, predicted, 0.1 * predicted + slack)
            << r << " at " << rate << ", load " << load;
      }
    }
  }
}

// Adds and removes random items in arrays of every kind of shape, from one line to many.
TEST(RegionLayoutTest, AddedItemsAreFoundUntilRemoved) {
  for (const unsigned r : kRegionSizes) {
    for (const uint64_t capacity : {3U, 40U, 1000U}) {
      for (const double rate : {0.2, 0.01, 1e-7}) {
        constexpr uint64_t kSeed = 20261122;
        std::mt19937_64 random(kSeed);
        Regions regions(capacity, rate, r);
        std::set<uint64_t> mine;
        std::map<Insertion, int> insertions;
        std::map<Removal, int> removals;
        for (int round = 0; round < 4000; ++round) {
          const uint64_t item = random() % (2 * capacity);
          const std::vector<uint64_t> before = regions.copy();
          const bool was_found = regions.check(item);
          if (random() % 2 == 0) {
            const Insertion answer = regions.insert(item);
            ++insertions[answer];
            ASSERT_EQ(answer == Insertion::kPresent, was_found);
            ASSERT_EQ(answer == Insertion::kAdded, regions.copy() != before);
            if (answer == Insertion::kAdded) mine.insert(item);
          } else if (mine.contains(item)) {
            const Removal answer = regions.remove(item);
            ++removals[answer];
            ASSERT_NE(answer, Removal::kAbsent);
            ASSERT_EQ(regions.check(item), answer == Removal::kStays);
            ASSERT_EQ(answer == Removal::kGone, regions.copy() != before);
            mine.erase(item);
          }
          if (round % 64 != 0) continue;
          for (const uint64_t kept : mine) ASSERT_TRUE(regions.check(kept)) << "seed " << kSeed;
          ASSERT_TRUE(regions.is_sound());
        }
        EXPECT_GT(insertions[Insertion::kAdded], 0);
        EXPECT_GT(removals[Removal::kGone], 0);
      }
    }
  }
}

TEST(RegionLayoutTest, EqualPositionsOfOneItemAreNoCollision) {
  // With two lines of five bits each, many items have two bits at the same position.
  for (uint64_t number = 0; number < 2000; ++number) {
    Regions regions(2, 1e-9, 2);
    ASSERT_EQ(regions.insert(number), Insertion::kAdded);
    ASSERT_EQ(regions.remove(number), Removal::kGone);
    for (const uint64_t word : regions.all_words().first(regions.all_words().size() - 3)) {
      ASSERT_EQ(word, 0U);
    }
    EXPECT_TRUE(regions.is_sound());
  }
}

// Removals that clear only some bits of an item leave its other bits set. Without the limit on set
// bits the error rate would exceed any bound.
TEST(RegionLayoutTest, ChurnNeverExceedsTheBitLimit) {
  constexpr uint64_t kItems = 20000;
  constexpr double kRate = 0.01;
  Regions regions(kItems, kRate, 10);
  std::set<uint64_t> mine;
  uint64_t next = 0;
  uint64_t removed = 0;
  while (mine.size() < kItems) {
    const Insertion answer = regions.insert(next);
    ASSERT_NE(answer, Insertion::kNoRoom);
    if (answer == Insertion::kAdded) mine.insert(next);
    ++next;
  }
  bool has_room = true;
  while (has_room) {
    ASSERT_LT(++removed, 100 * kItems);
    regions.remove(*mine.begin());
    mine.erase(mine.begin());
    const Insertion answer = regions.insert(next);
    has_room = answer != Insertion::kNoRoom;
    if (answer == Insertion::kAdded) mine.insert(next);
    ++next;
  }
  EXPECT_TRUE(regions.is_sound());
  // The error rate may be 10 % above the requested rate. This margin covers random deviations and
  // the few items that are added but not counted.
  EXPECT_LT(RegionLayout::error_now(regions.words(), regions.geometry(), 0), 1.1 * kRate);
  const std::vector<uint64_t> before = regions.copy();
  EXPECT_EQ(regions.insert(next), Insertion::kNoRoom);
  EXPECT_EQ(regions.copy(), before);
  for (const uint64_t kept : mine) ASSERT_TRUE(regions.check(kept));
  unsigned found = 0;
  constexpr unsigned kProbes = 200000;
  for (unsigned i = 0; i < kProbes; ++i) found += regions.check(1000000000 + i);
  EXPECT_LT(found, 1.2 * kRate * kProbes);
}

// Without removals, the filter reaches its capacity before the limit on set bits.
TEST(RegionLayoutTest, CapacityFitsWithoutRemovals) {
  for (const uint64_t capacity : {1U, 10U, 100U, 1000U, 30000U}) {
    for (const double rate : {0.25, 0.01, 1e-4}) {
      for (uint64_t run = 0; run < support::rounds(10U, 2U); ++run) {
        Regions regions(capacity, rate, 4);
        uint64_t added = 0;
        for (uint64_t i = 0; added < capacity; ++i) {
          const Insertion answer = regions.insert((run << 40) + i);
          ASSERT_NE(answer, Insertion::kNoRoom) << capacity << " at " << rate;
          added += answer == Insertion::kAdded;
        }
      }
    }
  }
}

TEST(RegionLayoutTest, GroupLookupsEqualSingleLookups) {
  Regions big(40000, 1e-4, 4);
  Regions small(500, 1e-5, 4);
  std::mt19937_64 random(77);
  for (uint64_t i = 0; i < 40000; ++i) big.insert(i);
  for (uint64_t i = 40000; i < 40500; ++i) small.insert(i);
  const std::array views{ArrayView{big.words(), big.geometry()},
                         ArrayView{small.words(), small.geometry()}};
  for (int round = 0; round < 50; ++round) {
    std::array<ItemHash, kGroupItems> hashes;
    std::array<bool, kGroupItems> expected{};
    std::array<bool, kGroupItems> found{};
    for (size_t i = 0; i < hashes.size(); ++i) {
      const uint64_t item = random() % 50000;
      hashes[i] = hash_of(item);
      expected[i] = big.check(item) || small.check(item);
    }
    RegionLayout::check_group(views, hashes, found);
    EXPECT_EQ(found, expected);
  }
}

TEST(RegionLayoutTest, ForgedCountsAreDetectedAndHarmless) {
  Regions regions(100, 0.01, 4);
  for (uint64_t i = 0; i < 50; ++i) regions.insert(i);
  const size_t ones = regions.all_words().size() - 3;
  ASSERT_TRUE(regions.is_sound());
  for (size_t i = ones; i < ones + 3; ++i) {
    const uint64_t sound = regions.word(i);
    regions.word(i) = ~uint64_t{0};
    EXPECT_FALSE(regions.is_sound());
    EXPECT_FALSE(regions.may_be_partly_loaded());
    regions.word(i) = sound;
  }
  regions.word(ones) = 0;
  EXPECT_FALSE(regions.is_sound());
  EXPECT_TRUE(regions.may_be_partly_loaded());
  for (uint64_t i = 0; i < 50; ++i) regions.remove(i);
  EXPECT_EQ(regions.word(ones), 0U);
}

// The positions of an item's bits are part of the file format.
TEST(RegionLayoutTest, BitPositionsAreFrozen) {
  Regions regions(1000, 0.001, 10);
  for (uint64_t i = 0; i < 100; ++i) regions.insert(i);
  for (uint64_t i = 0; i < 50; ++i) regions.remove(i);
  uint64_t sum = 0;
  for (const uint64_t word : regions.all_words()) sum = (sum ^ word) * 0x9E3779B97F4A7C15;
  EXPECT_EQ(regions.geometry().bit_count, 16576U);
  EXPECT_EQ(sum, 4344739439170077788U);
}

}  // namespace
}  // namespace core::bloom
