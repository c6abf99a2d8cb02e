// SPDX-License-Identifier: MIT
#include "core/bloom/native_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace core::bloom {
namespace {

class NativeArrayTest : public ::testing::Test {
 protected:
  static ItemHash hash_of(const std::string& item) { return NativeLayout::hash(item, {}); }
  bool mark(const std::string& item) {
    return NativeLayout::mark(words(), geometry_, hash_of(item));
  }
  bool check(const std::string& item) {
    return NativeLayout::check(words(), geometry_, hash_of(item));
  }
  // The words are aligned to the size of a cache line.
  uint64_t* words() { return reinterpret_cast<uint64_t*>(lines_.data()); }

  struct alignas(64) Line {
    std::array<uint64_t, 8> words{};
  };
  Geometry geometry_ = *NativeLayout::size(1000, 0.01);
  std::vector<Line> lines_ = std::vector<Line>(geometry_.bit_count / 512);
};

TEST_F(NativeArrayTest, SizesAreWholeLines) {
  for (const uint64_t capacity : {1, 100, 12'345, 10'000'000}) {
    for (const double rate : {0.25, 0.01, 1e-6}) {
      const auto geometry = NativeLayout::size(capacity, rate);
      ASSERT_TRUE(geometry) << capacity << " " << rate;
      EXPECT_EQ(geometry->bit_count % 512, 0U);
      EXPECT_TRUE(NativeLayout::is_valid(*geometry)) << capacity << " " << rate;
    }
  }
}

TEST_F(NativeArrayTest, SizeKeepsTheErrorRate) {
  for (const uint64_t capacity : {100, 5000, 1'000'000}) {
    for (const double rate : {0.1, 0.01, 0.0001}) {
      const auto geometry = NativeLayout::size(capacity, rate);
      ASSERT_TRUE(geometry);
      EXPECT_LE(NativeLayout::predicted_error(*geometry, capacity), rate * 1.0001)
          << capacity << " " << rate;
    }
  }
}

TEST_F(NativeArrayTest, SizingIsDeterministic) {
  const auto first = NativeLayout::size(77'777, 0.003);
  for (uint64_t other = 1; other < 100; ++other) (void)NativeLayout::size(other, 0.01);
  EXPECT_EQ(NativeLayout::size(77'777, 0.003), first);
}

TEST_F(NativeArrayTest, OversizedArraysAreRejected) {
  EXPECT_FALSE(NativeLayout::size(UINT64_MAX, 0.01));
}

TEST_F(NativeArrayTest, MarkedItemsAreFound) {
  for (int i = 0; i < 1000; ++i) mark(std::to_string(i));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(check(std::to_string(i))) << i;
}

TEST_F(NativeArrayTest, EmptyArrayContainsNoItem) {
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(check(std::to_string(i))) << i;
}

TEST_F(NativeArrayTest, MarkingAgainChangesNothing) {
  EXPECT_TRUE(mark("item"));
  EXPECT_FALSE(mark("item"));
}

TEST_F(NativeArrayTest, BitsOfAnItemLieInItsLines) {
  for (int i = 0; i < 100; ++i) {
    std::set<uint64_t> lines;
    unsigned count = 0;
    NativeLayout::visit_bits(geometry_, hash_of(std::to_string(i)), [&](uint64_t bit) {
      EXPECT_LT(bit, geometry_.bit_count);
      lines.insert(bit / 512);
      ++count;
    });
    EXPECT_EQ(count, geometry_.hash_count);
    EXPECT_LE(lines.size(), geometry_.lines_per_lookup);
  }
}

TEST_F(NativeArrayTest, MarkSetsTheBitsThatAreVisited) {
  std::set<uint64_t> visited;
  NativeLayout::visit_bits(geometry_, hash_of("item"), [&](uint64_t bit) { visited.insert(bit); });
  mark("item");
  for (uint64_t bit = 0; bit < geometry_.bit_count; ++bit) {
    ASSERT_EQ((words()[bit / 64] >> bit % 64 & 1) != 0, visited.contains(bit)) << bit;
  }
}

TEST_F(NativeArrayTest, InvalidGeometryIsRejected) {
  Geometry odd = geometry_;
  odd.bit_count += 64;
  EXPECT_FALSE(NativeLayout::is_valid(odd)) << "not a multiple of a line";
  odd = geometry_;
  odd.lines_per_lookup = 0;
  EXPECT_FALSE(NativeLayout::is_valid(odd));
  odd = geometry_;
  odd.lines_per_lookup = 1;
  odd.hash_count = 8;
  EXPECT_FALSE(NativeLayout::is_valid(odd)) << "too many bits in a line";
}

TEST_F(NativeArrayTest, SumOfLayerRatesKeepsTheBound) {
  FilterParameters parameters;
  parameters.error_rate = 0.01;
  parameters.capacity = 100;
  for (const double ratio : {0.0, 0.5, 0.9}) {
    parameters.tightening_ratio = ratio;
    double sum = 0;
    for (uint32_t index = 0; index < 100; ++index) {
      const double rate = NativeLayout::layer_error_rate(parameters, index);
      EXPECT_GE(rate, 0) << index;
      sum += rate;
    }
    EXPECT_LE(sum, parameters.error_rate * 1.0001) << ratio;
    EXPECT_GT(sum, parameters.error_rate * 0.5) << ratio;
  }
}

}  // namespace
}  // namespace core::bloom
