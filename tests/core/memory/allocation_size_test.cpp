// SPDX-License-Identifier: MIT
#include "core/memory/allocation_size.h"

#include <gtest/gtest.h>

#include <string>

#include "core/memory/thread_heap.h"

namespace core {
namespace {

TEST(AllocationSizeTest, FollowsTheSizeClasses) {
  EXPECT_EQ(allocation_size(1), 8U);
  EXPECT_EQ(allocation_size(9), 16U);
  EXPECT_EQ(allocation_size(44), 48U);
  EXPECT_EQ(allocation_size(128), 128U);
  EXPECT_EQ(allocation_size(129), 160U);
  EXPECT_EQ(allocation_size(1025), 1280U);
  EXPECT_EQ(allocation_size(size_t{1} << 32), size_t{1} << 32);
  for (size_t bytes = 1; bytes < 100000; bytes += 7) {
    ASSERT_GE(allocation_size(bytes), bytes);
    ASSERT_LE(allocation_size(bytes), bytes + bytes / 4 + 16);
  }
}

TEST(TextBytesTest, ShortStringsUseNoHeap) {
  EXPECT_EQ(text_bytes(std::string()), 0U);
  EXPECT_EQ(text_bytes(std::string(15, 'x')), 0U);
  EXPECT_EQ(text_bytes(std::string(16, 'x')), 32U) << "16 characters and the null character";
}

TEST(TextBytesTest, MatchesTheHeapOfTheThread) {
  for (size_t size = 1; size < 10'000'000; size += 1 + size / 7) {
    const auto before = thread_heap_bytes();
    if (!before) GTEST_SKIP() << "this allocator is not jemalloc";
    const std::string text(size, 'x');
    ASSERT_EQ(*thread_heap_bytes() - *before, text_bytes(text)) << size;
  }
}

}  // namespace
}  // namespace core
