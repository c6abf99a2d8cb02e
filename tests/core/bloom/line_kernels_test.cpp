// SPDX-License-Identifier: MIT
//
// Each set of line kernels gives the same result as a naive walk over the item's bits.
#include "core/bloom/line_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/layer.h"
#include "core/bloom/line_walk.h"

namespace core::bloom {
namespace {

constexpr uint64_t kKernelSeed = 20240612;

std::vector<uint64_t> naive_bits(const Geometry& geometry, ItemHash hash) {
  std::vector<uint64_t> bits;
  LineWalk walk(hash, geometry);
  for (unsigned line = 0; line < geometry.lines_per_lookup; ++line, walk.advance()) {
    for (unsigned i = 0; i < geometry.hash_count / unsigned{geometry.lines_per_lookup}; ++i) {
      bits.push_back(walk.word_index() * 64 + (walk.positions() >> (9 * i) & 511));
    }
  }
  return bits;
}

std::vector<const LineKernels*> all_kernels() {
  std::vector<const LineKernels*> kernels{&portable_line_kernels()};
  if (avx2_line_kernels() != nullptr) kernels.push_back(avx2_line_kernels());
  return kernels;
}

bool has_bit(const BitArray& bits, uint64_t bit) {
  return (bits.words()[bit / 64] >> (bit % 64) & 1) != 0;
}

void compare_with_naive(const LineKernels& kernels, const Geometry& geometry) {
  BitArray bits = *BitArray::allocate(geometry.bit_count);
  BitArray naive = *BitArray::allocate(geometry.bit_count);
  std::mt19937_64 random(kKernelSeed);
  for (int round = 0; round < 30; ++round) {
    std::array<ItemHash, kGroupItems> hashes;
    for (ItemHash& hash : hashes) hash = {random(), random()};
    std::array<bool, kGroupItems> found{};
    const size_t count = 1 + random() % kGroupItems;
    const auto group = std::span<const ItemHash>(hashes).first(count);
    const std::array views{ArrayView{bits.words(), geometry}};
    kernels.check_group(views, group, found);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<uint64_t> wanted = naive_bits(geometry, hashes[i]);
      const bool is_there = std::ranges::all_of(wanted, [&](auto b) { return has_bit(naive, b); });
      ASSERT_EQ(found[i], is_there);
      ASSERT_EQ(kernels.check(bits.words(), geometry, hashes[i]), is_there);
    }
    for (size_t i = 0; i < count; i += 3) {
      bool is_new = false;
      for (const uint64_t bit : naive_bits(geometry, hashes[i])) {
        is_new |= !has_bit(naive, bit);
        naive.words()[bit / 64] |= uint64_t{1} << (bit % 64);
      }
      ASSERT_EQ(kernels.mark(bits.words(), geometry, hashes[i]), is_new);
      ASSERT_TRUE(kernels.check(bits.words(), geometry, hashes[i]));
    }
    ASSERT_TRUE(std::ranges::equal(bits.bytes(), naive.bytes()));
  }
}

TEST(LineKernelsTest, EveryShapeMatchesTheNaiveWalk) {
  SCOPED_TRACE(kKernelSeed);
  for (const LineKernels* kernels : all_kernels()) {
    for (unsigned lines = 1; lines <= kMaxLinesPerLookup; ++lines) {
      for (unsigned bits_per_line = 1; bits_per_line <= kMaxBitsPerLine; ++bits_per_line) {
        Geometry geometry;
        geometry.bit_count = kLineBits * (1 + (lines * bits_per_line) % 5);
        geometry.lines_per_lookup = static_cast<uint8_t>(lines);
        geometry.hash_count = static_cast<uint16_t>(lines * bits_per_line);
        compare_with_naive(*kernels, geometry);
      }
    }
  }
}

// The arrays are in descending order of size. The kernels check each big array alone, and then all
// small arrays together.
TEST(LineKernelsTest, ItemsAreFoundInAnyArray) {
  SCOPED_TRACE(kKernelSeed);
  constexpr std::array<uint64_t, 7> kLineCounts{80'000, 40'000, 20'000, 5'000, 40, 2, 1};
  std::mt19937_64 random(kKernelSeed);
  std::vector<Layer> layers;  // in ascending order of size
  std::vector<ArrayView> views(kLineCounts.size());
  for (size_t i = kLineCounts.size(); i > 0; --i) {
    Geometry geometry;
    geometry.bit_count = kLineCounts[i - 1] * kLineBits;
    geometry.lines_per_lookup = static_cast<uint8_t>(1 + random() % 3);
    geometry.hash_count =
        static_cast<uint16_t>(geometry.lines_per_lookup * (1 + random() % kMaxBitsPerLine));
    layers.emplace_back(*BitArray::allocate(geometry.bit_count), geometry, 1, 0);
    views[i - 1] = layers.back().view();
  }
  for (int round = 0; round < 40; ++round) {
    std::array<ItemHash, kGroupItems> hashes;
    for (ItemHash& hash : hashes) hash = {random(), random()};
    for (size_t i = 0; i < hashes.size(); i += 2) {
      Layer& layer = layers[random() % layers.size()];
      portable_line_kernels().mark(layer.bits().words(), layer.geometry(), hashes[i]);
    }
    for (const LineKernels* kernels : all_kernels()) {
      const auto used = std::span<const ArrayView>(views).subspan(random() % views.size());
      std::array<bool, kGroupItems> found{};
      kernels->check_group(used, hashes, found);
      for (size_t i = 0; i < hashes.size(); ++i) {
        const bool is_there = std::ranges::any_of(used, [&](const ArrayView& view) {
          return portable_line_kernels().check(view.words, view.geometry, hashes[i]);
        });
        ASSERT_EQ(found[i], is_there);
        ASSERT_EQ(kernels->check_any(std::span(layers).first(used.size()), hashes[i]), is_there);
      }
    }
  }
}

// Some items count as found before the call, and some items repeat. The sizes of the array are
// below and above the minimum size for prefetching.
TEST(LineKernelsTest, MarkGroupEqualsMarkingEachItem) {
  SCOPED_TRACE(kKernelSeed);
  std::mt19937_64 random(kKernelSeed);
  for (const uint64_t line_count : {1, 7, 5'000}) {
    for (unsigned bits_per_line = 1; bits_per_line <= kMaxBitsPerLine; ++bits_per_line) {
      Geometry geometry;
      geometry.bit_count = line_count * kLineBits;
      geometry.lines_per_lookup = static_cast<uint8_t>(1 + random() % kMaxLinesPerLookup);
      geometry.hash_count = static_cast<uint16_t>(geometry.lines_per_lookup * bits_per_line);
      for (const LineKernels* kernels : all_kernels()) {
        BitArray grouped = *BitArray::allocate(geometry.bit_count);
        BitArray single = *BitArray::allocate(geometry.bit_count);
        for (int round = 0; round < 10; ++round) {
          const size_t count = 1 + random() % kGroupItems;
          std::vector<ItemHash> hashes(count);
          for (ItemHash& hash : hashes) hash = {random() % 3 << 62, random() % 50};
          std::array<bool, kGroupItems> found{};
          for (size_t i = 0; i < count; ++i) found[i] = random() % 4 == 0;
          std::array<bool, kGroupItems> wanted = found;
          uint64_t new_count = 0;
          for (size_t i = 0; i < count; ++i) {
            if (wanted[i]) continue;
            wanted[i] = !portable_line_kernels().mark(single.words(), geometry, hashes[i]);
            new_count += !wanted[i];
          }
          ASSERT_EQ(
              kernels->mark_group(grouped.words(), geometry, hashes, std::span(found).first(count)),
              new_count);
          ASSERT_EQ(found, wanted);
          ASSERT_TRUE(std::ranges::equal(grouped.bytes(), single.bytes()));
        }
      }
    }
  }
}

TEST(LineKernelsTest, GroupSkipsFoundItems) {
  Geometry geometry;
  geometry.bit_count = kLineBits;
  geometry.lines_per_lookup = 2;
  geometry.hash_count = 8;
  const BitArray empty = *BitArray::allocate(geometry.bit_count);
  const std::array<ItemHash, 3> hashes{ItemHash{1, 2}, ItemHash{3, 4}, ItemHash{5, 6}};
  for (const LineKernels* kernels : all_kernels()) {
    std::array<bool, 3> found{false, true, false};
    const ArrayView view{empty.words(), geometry};
    for (const std::vector<ArrayView>& views : {std::vector{view}, std::vector{view, view}}) {
      kernels->check_group(views, hashes, found);
      EXPECT_EQ(found, (std::array{false, true, false}));
    }
  }
}

TEST(LineKernelsTest, BestKernelsAreOneOfTheSets) {
  EXPECT_TRUE(std::ranges::count(all_kernels(), &line_kernels()) == 1);
}

}  // namespace
}  // namespace core::bloom
