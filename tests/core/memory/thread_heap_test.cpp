// SPDX-License-Identifier: MIT
#include "core/memory/thread_heap.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace core {
namespace {

TEST(ThreadHeap, CountsBlocksOfAllThreads) {
  const auto own_before = thread_heap_bytes();
  if (!own_before) {
    EXPECT_EQ(counted_thread_count(), 0U);
    EXPECT_EQ(counted_heap_bytes(), 0U);
    return;  // the program is linked with an allocator other than jemalloc
  }
  constexpr size_t kSize = 8192;  // jemalloc adds no bytes to a block of this size
  const uint64_t before = counted_heap_bytes();
  void* const block = std::malloc(kSize);
  EXPECT_EQ(counted_heap_bytes() - before, kSize);
  EXPECT_EQ(*thread_heap_bytes() - *own_before, kSize);
  const size_t threads = counted_thread_count();
  std::thread([&] {
    count_thread_heap();
    EXPECT_EQ(counted_thread_count(), threads + 1);
    std::free(block);
  }).join();
  EXPECT_EQ(counted_thread_count(), threads);
  // The start and the end of the thread itself take some bytes, which the tolerance allows for.
  EXPECT_LT(counted_heap_bytes() - before + 4096, 8192U);
  EXPECT_GE(*thread_heap_bytes() - *own_before, kSize) << "another thread has freed the block";
}

}  // namespace
}  // namespace core
