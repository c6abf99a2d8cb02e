// SPDX-License-Identifier: MIT
#include "core/bit_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace core::bitmap {
namespace {

constexpr uint64_t kBitOperationsSeed = 0xb1709;

using Bytes = std::vector<uint8_t>;
using enum BitOperation;

constexpr BitOperation kManySourced[] = {kAnd, kOr, kXor, kDiff, kDiff1, kAndOr, kOne};

Bytes combined(BitOperation operation, const std::vector<Bytes>& sources, size_t size) {
  const std::vector<std::span<const uint8_t>> views(sources.begin(), sources.end());
  Bytes out(size, 0xcc);  // non-zero, because previous bytes of `out` must not affect the result
  combine(operation, views, out);
  return out;
}

bool bit_at(const Bytes& bytes, size_t bit) {
  return bit / 8 < bytes.size() && ((bytes[bit / 8] >> (7 - bit % 8)) & 1) != 0;
}

// Naive model: each operation by its definition, one bit at a time.
bool naive_bit(BitOperation operation, const std::vector<Bytes>& sources, size_t bit) {
  size_t set_count = 0;
  for (const Bytes& source : sources) set_count += bit_at(source, bit);
  const bool in_first = bit_at(sources.front(), bit);
  const bool in_others = set_count > static_cast<size_t>(in_first);
  switch (operation) {
    case kAnd:
      return set_count == sources.size();
    case kOr:
      return set_count > 0;
    case kXor:
      return set_count % 2 == 1;
    case kNot:
      return !in_first;
    case kDiff:
      return in_first && !in_others;
    case kDiff1:
      return in_others && !in_first;
    case kAndOr:
      return in_first && in_others;
    case kOne:
      return set_count == 1;
  }
  return false;
}

Bytes naive(BitOperation operation, const std::vector<Bytes>& sources, size_t size) {
  Bytes out(size);
  for (size_t bit = 0; bit < size * 8; ++bit) {
    if (naive_bit(operation, sources, bit)) {
      out[bit / 8] = static_cast<uint8_t>(out[bit / 8] | (0x80U >> (bit % 8)));
    }
  }
  return out;
}

TEST(BitOperations, EachOperationFollowsItsDefinition) {
  const std::vector<Bytes> sources = {{0b11110000}, {0b11001100}, {0b10101010}};
  EXPECT_EQ(combined(kAnd, sources, 1), Bytes{0b10000000});
  EXPECT_EQ(combined(kOr, sources, 1), Bytes{0b11111110});
  EXPECT_EQ(combined(kXor, sources, 1), Bytes{0b10010110});
  EXPECT_EQ(combined(kDiff, sources, 1), Bytes{0b00010000});
  EXPECT_EQ(combined(kDiff1, sources, 1), Bytes{0b00001110});
  EXPECT_EQ(combined(kAndOr, sources, 1), Bytes{0b11100000});
  EXPECT_EQ(combined(kOne, sources, 1), Bytes{0b00010110});
  EXPECT_EQ(combined(kNot, {{0b11110000}}, 1), Bytes{0b00001111});
}

TEST(BitOperations, MissingTailsCountAsZeros) {
  const std::vector<Bytes> sources = {{0xff}, {0xff, 0xff}};
  EXPECT_EQ(combined(kAnd, sources, 3), (Bytes{0xff, 0x00, 0x00}));
  EXPECT_EQ(combined(kXor, sources, 3), (Bytes{0x00, 0xff, 0x00}));
  EXPECT_EQ(combined(kNot, {{0x0f}}, 3), (Bytes{0xf0, 0xff, 0xff}));
}

TEST(BitOperations, SourcesLongerThanTheResultAreCut) {
  for (const BitOperation operation : kManySourced) {
    const std::vector<Bytes> sources = {Bytes(50, 0x3c), Bytes(9, 0x55)};
    EXPECT_EQ(combined(operation, sources, 5), naive(operation, sources, 5));
  }
}

TEST(BitOperations, NoSourcesCombineToZeros) {
  for (const BitOperation operation : kManySourced) {
    EXPECT_EQ(combined(operation, {}, 3), Bytes(3));
    EXPECT_EQ(combined(operation, {{}, {}}, 3), Bytes(3));
    EXPECT_EQ(combined(operation, {{0xff}}, 0), Bytes());
  }
}

TEST(BitOperations, RandomSourcesAgreeWithTheNaiveModel) {
  SCOPED_TRACE(kBitOperationsSeed);
  std::mt19937_64 random(kBitOperationsSeed);
  // The sizes of the sources are near those of words, vectors and the 8 KiB block.
  constexpr size_t kSizes[] = {0, 1, 7, 8, 9, 31, 32, 33, 1000, 8191, 8192, 8193, 16'390};
  for (int round = 0; round < 120; ++round) {
    std::vector<Bytes> sources(1 + random() % 5);
    size_t longest = 0;
    for (Bytes& source : sources) {
      source.resize(kSizes[random() % std::size(kSizes)]);
      std::generate(source.begin(), source.end(), [&] { return static_cast<uint8_t>(random()); });
      longest = std::max(longest, source.size());
    }
    const size_t size = longest + random() % 3;
    const BitOperation operation =
        kManySourced[static_cast<size_t>(round) % std::size(kManySourced)];
    ASSERT_EQ(combined(operation, sources, size), naive(operation, sources, size));
    sources.resize(1);
    ASSERT_EQ(combined(kNot, sources, size), naive(kNot, sources, size));
  }
}

}  // namespace
}  // namespace core::bitmap
