// SPDX-License-Identifier: MIT
#include "core/bitmap.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <vector>

namespace core::bitmap {
namespace {

constexpr uint64_t kBitmapSeed = 0x5eedb17;
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

using Bytes = std::vector<uint8_t>;

// Naive model: one bool per bit.
std::vector<bool> bits_of(const Bytes& bytes) {
  std::vector<bool> bits;
  for (const uint8_t byte : bytes) {
    for (int shift = 7; shift >= 0; --shift) bits.push_back((byte >> shift) & 1);
  }
  return bits;
}

uint64_t naive_count(const std::vector<bool>& bits, uint64_t first, uint64_t last) {
  uint64_t count = 0;
  for (uint64_t i = first; i <= last && i < bits.size(); ++i) count += bits[i];
  return count;
}

std::optional<uint64_t> naive_find(const std::vector<bool>& bits, bool bit, uint64_t first,
                                   uint64_t last) {
  for (uint64_t i = first; i <= last && i < bits.size(); ++i) {
    if (bits[i] == bit) return i;
  }
  return std::nullopt;
}

// Long runs of equal bytes with rare exceptions, so that searches skip bytes.
Bytes random_bytes(std::mt19937_64& random) {
  Bytes bytes(random() % 200, random() % 2 == 0 ? 0x00 : 0xff);
  const uint64_t changes = random() % 6;
  for (uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
  }
  return bytes;
}

TEST(Bitmap, FirstBitIsTheMostSignificantOfByteZero) {
  Bytes bytes(2);
  EXPECT_FALSE(set_bit(bytes, 0, true));
  EXPECT_FALSE(set_bit(bytes, 15, true));
  EXPECT_EQ(bytes, (Bytes{0x80, 0x01}));
  EXPECT_TRUE(set_bit(bytes, 0, false));
  EXPECT_EQ(bytes, (Bytes{0x00, 0x01}));
}

TEST(Bitmap, BitsBeyondTheEndAreZero) {
  const Bytes bytes{0xff};
  EXPECT_TRUE(get_bit(bytes, 7));
  EXPECT_FALSE(get_bit(bytes, 8));
  EXPECT_FALSE(get_bit(bytes, kNoLimit));
  EXPECT_FALSE(get_bit({}, 0));
}

TEST(Bitmap, EmptySpanHasNoBits) {
  EXPECT_EQ(count_bits({}), 0U);
  EXPECT_EQ(count_bits({}, 0, kNoLimit), 0U);
  EXPECT_EQ(find_bit({}, true, 0, kNoLimit), std::nullopt);
  EXPECT_EQ(find_bit({}, false, 0, kNoLimit), std::nullopt);
}

TEST(Bitmap, ReversedRangesAndRangesBeyondTheEndAreEmpty) {
  const Bytes bytes(40, 0xff);
  EXPECT_EQ(count_bits(bytes, 9, 8), 0U);
  EXPECT_EQ(count_bits(bytes, 320, kNoLimit), 0U);
  EXPECT_EQ(find_bit(bytes, true, 9, 8), std::nullopt);
  EXPECT_EQ(find_bit(bytes, true, 320, kNoLimit), std::nullopt);
}

TEST(Bitmap, ZerosAfterTheLastByteAreNotFound) {
  const Bytes bytes(9, 0xff);
  EXPECT_EQ(find_bit(bytes, false, 0, kNoLimit), std::nullopt);
}

TEST(Bitmap, SetBitAgreesWithTheNaiveModel) {
  SCOPED_TRACE(kBitmapSeed);
  std::mt19937_64 random(kBitmapSeed);
  Bytes bytes(64);
  std::vector<bool> twin(bytes.size() * 8);
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t offset = random() % twin.size();
    const bool value = random() % 2 == 0;
    ASSERT_EQ(set_bit(bytes, offset, value), twin[offset]);
    twin[offset] = value;
    const uint64_t probe = random() % (twin.size() + 16);
    ASSERT_EQ(get_bit(bytes, probe), probe < twin.size() && twin[probe]);
  }
  EXPECT_EQ(bits_of(bytes), twin);
}

TEST(Bitmap, CountsAndSearchesAgreeWithTheNaiveModel) {
  SCOPED_TRACE(kBitmapSeed);
  std::mt19937_64 random(kBitmapSeed);
  for (int round = 0; round < 3'000; ++round) {
    const Bytes bytes = random_bytes(random);
    const std::vector<bool> twin = bits_of(bytes);
    ASSERT_EQ(count_bits(bytes), naive_count(twin, 0, kNoLimit));
    const uint64_t first = random() % (twin.size() + 10);
    const uint64_t last = random() % (twin.size() + 10);
    ASSERT_EQ(count_bits(bytes, first, last), naive_count(twin, first, last));
    for (const bool bit : {false, true}) {
      ASSERT_EQ(find_bit(bytes, bit, first, last), naive_find(twin, bit, first, last));
      ASSERT_EQ(find_bit(bytes, bit, first, kNoLimit), naive_find(twin, bit, first, kNoLimit));
    }
  }
}

TEST(Bitmap, EveryShortRangeAgreesWithTheNaiveModel) {
  const Bytes bytes{0x00, 0xa5, 0xff, 0x00, 0x01, 0x80, 0x7e, 0x00, 0x00, 0x10};
  const std::vector<bool> twin = bits_of(bytes);
  for (uint64_t first = 0; first <= twin.size(); ++first) {
    for (uint64_t last = 0; last <= twin.size(); ++last) {
      ASSERT_EQ(count_bits(bytes, first, last), naive_count(twin, first, last));
      ASSERT_EQ(find_bit(bytes, true, first, last), naive_find(twin, true, first, last));
      ASSERT_EQ(find_bit(bytes, false, first, last), naive_find(twin, false, first, last));
    }
  }
}

// The bitmap has 512 MiB, of which calloc allocates only the touched pages.
TEST(Bitmap, LastBitOfTheLargestRedisStringIsReached) {
  constexpr uint64_t kBits = uint64_t{1} << 32;
  const std::unique_ptr<uint8_t, void (*)(void*)> owner(
      static_cast<uint8_t*>(std::calloc(kBits / 8, 1)), std::free);
  ASSERT_NE(owner, nullptr);
  const std::span<uint8_t> bytes(owner.get(), kBits / 8);
  EXPECT_FALSE(set_bit(bytes, kBits - 1, true));
  EXPECT_TRUE(get_bit(bytes, kBits - 1));
  EXPECT_FALSE(get_bit(bytes, kBits));
  constexpr uint64_t kNear = kBits - 1'000'003;
  EXPECT_EQ(count_bits(bytes, kNear, kNoLimit), 1U);
  EXPECT_EQ(count_bits(bytes, kNear, kBits - 2), 0U);
  EXPECT_EQ(find_bit(bytes, true, kNear, kNoLimit), kBits - 1);
  EXPECT_EQ(find_bit(bytes, true, kNear, kBits - 2), std::nullopt);
  EXPECT_EQ(find_bit(bytes, false, kBits - 1, kNoLimit), std::nullopt);
}

}  // namespace
}  // namespace core::bitmap
