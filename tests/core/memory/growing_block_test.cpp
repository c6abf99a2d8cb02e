// SPDX-License-Identifier: MIT
#include "core/memory/growing_block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

namespace core {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

TEST(GrowingBlockTest, BytesSurviveEachResize) {
  GrowingBlock block = resize({}, 6, 0);
  std::memcpy(block.data, "kept..", 6);
  // The block moves from the allocator to a mapping and back. It grows and shrinks both in the
  // allocator's memory and as a mapping.
  for (const size_t capacity : {size_t{100}, size_t{10}, 40 * kMebibyte, 70 * kMebibyte,
                                33 * kMebibyte, 5 * kMebibyte, 33 * kMebibyte, size_t{6}}) {
    block = resize(block, capacity, 6);
    EXPECT_EQ(block.capacity_bytes, capacity);
    EXPECT_EQ(std::string_view(block.data, 6), "kept..") << capacity;
    block.data[capacity - 1] = '.';
  }
  block = resize(block, 0, 0);
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(block.capacity_bytes, 0U);
}

TEST(GrowingBlockTest, MappedBytesAreCounted) {
  const uint64_t before = growing_block_mapped_bytes();
  GrowingBlock block = resize({}, kMebibyte, 0);
  EXPECT_EQ(growing_block_mapped_bytes(), before);
  block = resize(block, 40 * kMebibyte, 0);
  EXPECT_EQ(growing_block_mapped_bytes(), before + 40 * kMebibyte);
  block = resize(block, 80 * kMebibyte + 1, 0);
  EXPECT_EQ(block.capacity_bytes, 80 * kMebibyte + 4096);
  EXPECT_EQ(growing_block_mapped_bytes(), before + 80 * kMebibyte + 4096);
  (void)resize(block, 0, 0);
  EXPECT_EQ(growing_block_mapped_bytes(), before);
}

TEST(GrowingBlockTest, LargeBlocksGrowByAFraction) {
  EXPECT_EQ(next_capacity({}, 1), 256U);
  EXPECT_EQ(next_capacity({nullptr, 1000}, 1001), 2000U);
  EXPECT_EQ(next_capacity({nullptr, 1000}, 5000), 5000U);
  EXPECT_EQ(next_capacity({nullptr, 64 * kMebibyte}, 80 * kMebibyte), 90 * kMebibyte);
}

}  // namespace
}  // namespace core
