// SPDX-License-Identifier: MIT
#include "core/bloom/double_hashing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace core::bloom {
namespace {

// The textbook sequence: start + i * step modulo the bit count.
class PlainProbes {
 public:
  PlainProbes(ItemHash hash, const Geometry& geometry)
      : next_(hash.first % geometry.bit_count),
        step_(hash.second % geometry.bit_count),
        bits_(geometry.bit_count) {}
  uint64_t next() {
    const uint64_t bit = next_;
    next_ = (next_ + step_) % bits_;
    return bit;
  }

 private:
  uint64_t next_;
  uint64_t step_;
  uint64_t bits_;
};
using Hashing = DoubleHashing<PlainProbes>;

constexpr Geometry kGeometry{.bit_count = 1000, .hash_count = 5};

class DoubleHashingTest : public ::testing::Test {
 protected:
  bool mark(ItemHash hash) { return Hashing::mark(words_.data(), kGeometry, hash); }
  bool check(ItemHash hash) const { return Hashing::check(words_.data(), kGeometry, hash); }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(16);
};

TEST_F(DoubleHashingTest, MarkedItemsAreFound) {
  EXPECT_FALSE(check({3, 7}));
  EXPECT_TRUE(mark({3, 7}));
  EXPECT_TRUE(check({3, 7}));
  EXPECT_FALSE(check({4, 7}));
}

TEST_F(DoubleHashingTest, MarkingAgainChangesNothing) {
  mark({3, 7});
  const auto before = words_;
  EXPECT_FALSE(mark({3, 7}));
  EXPECT_EQ(words_, before);
}

TEST_F(DoubleHashingTest, OneClearBitMakesAnItemAbsent) {
  mark({3, 7});
  for (unsigned i = 0; i < kGeometry.hash_count; ++i) {
    const uint64_t bit = 3 + i * 7;
    words_[bit / 64] ^= uint64_t{1} << bit % 64;
    EXPECT_FALSE(check({3, 7})) << i;
    words_[bit / 64] ^= uint64_t{1} << bit % 64;
  }
}

TEST_F(DoubleHashingTest, BitsFollowTheProbeSequence) {
  std::set<uint64_t> visited;
  Hashing::visit_bits(kGeometry, {990, 6}, [&](uint64_t bit) { visited.insert(bit); });
  EXPECT_EQ(visited, (std::set<uint64_t>{990, 996, 2, 8, 14}));
  mark({990, 6});
  uint64_t set_bits = 0;
  for (uint64_t bit = 0; bit < kGeometry.bit_count; ++bit) {
    const bool is_set = (words_[bit / 64] >> bit % 64 & 1) != 0;
    EXPECT_EQ(is_set, visited.contains(bit)) << bit;
    set_bits += is_set ? 1 : 0;
  }
  EXPECT_EQ(set_bits, visited.size());
}

TEST_F(DoubleHashingTest, GroupIsFoundInAnyArray) {
  std::vector<uint64_t> other(16);
  mark({3, 7});
  Hashing::mark(other.data(), kGeometry, {500, 9});
  const std::array<ArrayView, 2> arrays{ArrayView{words_.data(), kGeometry},
                                        ArrayView{other.data(), kGeometry}};
  const std::array<ItemHash, 3> hashes{ItemHash{3, 7}, ItemHash{500, 9}, ItemHash{1, 1}};
  std::array<bool, 3> found{};
  Hashing::check_group(arrays, hashes, found);
  EXPECT_EQ(found, (std::array<bool, 3>{true, true, false}));
}

TEST_F(DoubleHashingTest, GroupKeepsFoundItems) {
  const std::array<ArrayView, 1> arrays{ArrayView{words_.data(), kGeometry}};
  const std::array<ItemHash, 2> hashes{ItemHash{3, 7}, ItemHash{4, 7}};
  std::array<bool, 2> found{true, false};
  Hashing::check_group(arrays, hashes, found);
  EXPECT_EQ(found, (std::array<bool, 2>{true, false}));
}

TEST(DoubleHashingErrorTest, ErrorGrowsWithItemsFromZeroToOne) {
  EXPECT_EQ(double_hashing_error(kGeometry, 0), 0);
  double before = 0;
  for (const uint64_t items : {1, 10, 100, 1000, 100'000}) {
    const double rate = double_hashing_error(kGeometry, items);
    EXPECT_GT(rate, before) << items;
    EXPECT_LE(rate, 1) << items;
    before = rate;
  }
  EXPECT_NEAR(before, 1, 1e-6);
}

TEST(DoubleHashingErrorTest, EqualsClassicFormulaIfNoSequenceRepeats) {
  const Geometry geometry{.bit_count = 9'585'059, .hash_count = 7};
  const double classic = std::pow(1 - std::exp(-7.0 * 1'000'000 / 9'585'059), 7);
  EXPECT_NEAR(double_hashing_error(geometry, 1'000'000), classic, classic * 1e-3);
}

TEST(DoubleHashingErrorTest, RepeatedSequencesBoundTheErrorRate) {
  const Geometry geometry{.bit_count = 100'000, .hash_count = 500};
  EXPECT_GE(double_hashing_error(geometry, 10), 10 * 2 / 1e10);
}

}  // namespace
}  // namespace core::bloom
