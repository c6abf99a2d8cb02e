// SPDX-License-Identifier: MIT
//
// Each set of lane kernels gives the same result as a naive walk over the item's bits.
#include "core/bloom/lane_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/arrays/lane_sets.h"
#include "core/bloom/layer.h"

namespace core::bloom {
namespace {

constexpr uint64_t kLaneSeed = 20261127;

std::vector<uint64_t> naive_lane_bits(const Geometry& geometry, ItemHash hash) {
  std::vector<uint64_t> bits;
  LaneWalk walk(hash, geometry);
  for (unsigned line = 0; line < geometry.lines_per_lookup; ++line, walk.advance()) {
    const uint64_t positions = walk.positions();
    const unsigned count = geometry.hash_count / unsigned{geometry.lines_per_lookup};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if ((lane_set(count, positions >> 28 & 15) >> lane & 1) == 0) continue;
      bits.push_back(walk.word_index() * 64 + lane_bit(positions, lane));
    }
  }
  return bits;
}

bool has_lane_bits(const BitArray& bits, const std::vector<uint64_t>& wanted) {
  return std::ranges::all_of(
      wanted, [&](uint64_t bit) { return (bits.words()[bit / 64] >> (bit % 64) & 1) != 0; });
}

Geometry lane_geometry(uint64_t line_count, unsigned lines_per_lookup, unsigned lane_count) {
  Geometry geometry;
  geometry.bit_count = line_count * kLineBits;
  geometry.lines_per_lookup = static_cast<uint8_t>(lines_per_lookup);
  geometry.hash_count = static_cast<uint16_t>(lines_per_lookup * lane_count);
  return geometry;
}

std::vector<ItemHash> random_hashes(std::mt19937_64& random, size_t count) {
  std::vector<ItemHash> hashes(count);
  for (ItemHash& hash : hashes) hash = {random(), 0};
  return hashes;
}

void compare_lanes_with_naive(const LineKernels& kernels, const Geometry& geometry) {
  BitArray bits = *BitArray::allocate(geometry.bit_count);
  BitArray naive = *BitArray::allocate(geometry.bit_count);
  std::mt19937_64 random(kLaneSeed);
  for (int round = 0; round < 20; ++round) {
    const auto hashes = random_hashes(random, 1 + random() % kGroupItems);
    std::array<bool, kGroupItems> found{};
    const std::array views{ArrayView{bits.words(), geometry}};
    kernels.check_group(views, hashes, std::span(found).first(hashes.size()));
    for (size_t i = 0; i < hashes.size(); ++i) {
      const bool is_there = has_lane_bits(naive, naive_lane_bits(geometry, hashes[i]));
      ASSERT_EQ(found[i], is_there);
      ASSERT_EQ(kernels.check(bits.words(), geometry, hashes[i]), is_there);
    }
    for (size_t i = 0; i < hashes.size(); i += 3) {
      const std::vector<uint64_t> own = naive_lane_bits(geometry, hashes[i]);
      const bool is_new = !has_lane_bits(naive, own);
      for (const uint64_t bit : own) naive.words()[bit / 64] |= uint64_t{1} << (bit % 64);
      ASSERT_EQ(kernels.mark(bits.words(), geometry, hashes[i]), is_new);
      ASSERT_TRUE(kernels.check(bits.words(), geometry, hashes[i]));
    }
    ASSERT_TRUE(std::ranges::equal(bits.bytes(), naive.bytes()));
  }
}

TEST(LaneKernelsTest, EveryShapeMatchesTheNaiveWalk) {
  SCOPED_TRACE(kLaneSeed);
  for (const LineKernels* kernels : supported_lane_kernels()) {
    for (unsigned lines = 1; lines <= kMaxLinesPerLookup; ++lines) {
      for (unsigned lanes = 1; lanes <= kMaxLanesPerItem; ++lanes) {
        compare_lanes_with_naive(*kernels, lane_geometry(1 + (lines * lanes) % 5, lines, lanes));
      }
    }
  }
}

TEST(LaneKernelsTest, BestKernelsAreTheLastSupported) {
  EXPECT_EQ(&lane_kernels(), supported_lane_kernels().back());
  EXPECT_EQ(&portable_lane_kernels(), supported_lane_kernels().front());
}

// The arrays are in descending order of size. The kernels check each big array alone, and then all
// small arrays together.
TEST(LaneKernelsTest, ItemsAreFoundInAnyArray) {
  SCOPED_TRACE(kLaneSeed);
  constexpr std::array<uint64_t, 7> kLineCounts{80'000, 40'000, 20'000, 5'000, 40, 2, 1};
  std::mt19937_64 random(kLaneSeed);
  std::vector<Layer> layers;  // in ascending order of size
  std::vector<ArrayView> views(kLineCounts.size());
  for (size_t i = kLineCounts.size(); i > 0; --i) {
    const Geometry geometry =
        lane_geometry(kLineCounts[i - 1], 1 + static_cast<unsigned>(random() % 3),
                      1 + static_cast<unsigned>(random() % kMaxLanesPerItem));
    layers.emplace_back(*BitArray::allocate(geometry.bit_count), geometry, 1, 0);
    views[i - 1] = layers.back().view();
  }
  for (int round = 0; round < 40; ++round) {
    const auto hashes = random_hashes(random, kGroupItems);
    for (size_t i = 0; i < hashes.size(); i += 2) {
      Layer& layer = layers[random() % layers.size()];
      portable_lane_kernels().mark(layer.bits().words(), layer.geometry(), hashes[i]);
    }
    for (const LineKernels* kernels : supported_lane_kernels()) {
      const auto used = std::span<const ArrayView>(views).subspan(random() % views.size());
      std::array<bool, kGroupItems> found{};
      kernels->check_group(used, hashes, found);
      for (size_t i = 0; i < hashes.size(); ++i) {
        const bool is_there = std::ranges::any_of(used, [&](const ArrayView& view) {
          return portable_lane_kernels().check(view.words, view.geometry, hashes[i]);
        });
        ASSERT_EQ(found[i], is_there);
        ASSERT_EQ(kernels->check_any(std::span(layers).first(used.size()), hashes[i]), is_there);
      }
    }
  }
}

// Some items count as found before the call, and some items repeat. The sizes of the array are
// below and above the minimum size for prefetching.
TEST(LaneKernelsTest, MarkGroupEqualsMarkingEachItem) {
  SCOPED_TRACE(kLaneSeed);
  std::mt19937_64 random(kLaneSeed);
  for (const uint64_t line_count : {1, 7, 5'000}) {
    for (unsigned lanes = 1; lanes <= kMaxLanesPerItem; ++lanes) {
      const Geometry geometry =
          lane_geometry(line_count, 1 + static_cast<unsigned>(random() % 4), lanes);
      for (const LineKernels* kernels : supported_lane_kernels()) {
        BitArray grouped = *BitArray::allocate(geometry.bit_count);
        BitArray single = *BitArray::allocate(geometry.bit_count);
        for (int round = 0; round < 10; ++round) {
          std::vector<ItemHash> hashes(1 + random() % kGroupItems);
          for (ItemHash& hash : hashes) hash = {random() % 60 * 0x9E3779B97F4A7C15, 0};
          std::array<bool, kGroupItems> found{};
          for (size_t i = 0; i < hashes.size(); ++i) found[i] = random() % 4 == 0;
          std::array<bool, kGroupItems> wanted = found;
          uint64_t new_count = 0;
          for (size_t i = 0; i < hashes.size(); ++i) {
            if (wanted[i]) continue;
            wanted[i] = !portable_lane_kernels().mark(single.words(), geometry, hashes[i]);
            new_count += !wanted[i];
          }
          ASSERT_EQ(kernels->mark_group(grouped.words(), geometry, hashes,
                                        std::span(found).first(hashes.size())),
                    new_count);
          ASSERT_EQ(found, wanted);
          ASSERT_TRUE(std::ranges::equal(grouped.bytes(), single.bytes()));
        }
      }
    }
  }
}

TEST(LaneSetsTest, RotationsOfASetUseEachLaneAlike) {
  for (unsigned count = 1; count <= kMaxLanesPerItem; ++count) {
    std::array<unsigned, kLanes> uses{};
    for (unsigned rotation = 0; rotation < kLanes; ++rotation) {
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const bool is_used = (lane_set(count, rotation) >> lane & 1) != 0;
        EXPECT_EQ(kLaneSetRows[count].rotations[rotation][lane], is_used ? 1U : 0U);
        uses[lane] += is_used;
      }
    }
    for (const unsigned use : uses) EXPECT_EQ(use, count);
  }
}

}  // namespace
}  // namespace core::bloom
