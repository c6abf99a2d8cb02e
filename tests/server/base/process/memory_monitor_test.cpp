// SPDX-License-Identifier: MIT
#include "server/base/process/memory_monitor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/reclaimer.h"
#include "core/memory/thread_heap.h"

namespace server {
namespace {

using core::bloom::BitArray;
using core::keyspace::Entry;
using core::keyspace::EntryPtr;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

EntryPtr entry_with_filter(uint64_t capacity) {
  core::bloom::FilterParameters parameters;
  parameters.capacity = capacity;
  auto filter = core::bloom::ScalableFilter::create(parameters, core::UnlimitedMemory());
  EXPECT_TRUE(filter);
  EntryPtr entry = Entry::create("f");
  entry->set_filter(std::move(*filter));
  return entry;
}

TEST(MemoryMonitorTest, ArraysMadeSinceTheLastMeasurementAreCounted) {
  MemoryMonitor memory;
  memory.set_limit(memory.refresh() + 200 * kMebibyte);
  std::vector<BitArray> arrays;
  // Allocates arrays of several sizes. available_bytes() must immediately shrink by each array's
  // size, without a new measurement.
  for (const uint64_t size_bytes : {64 * kMebibyte, 8 * kMebibyte, kMebibyte / 2}) {
    const uint64_t before_bytes = memory.available_bytes();
    arrays.push_back(*BitArray::allocate(size_bytes * 8));
    const uint64_t after_bytes = memory.available_bytes();
    EXPECT_LE(after_bytes + size_bytes, before_bytes + kMebibyte / 4);
  }
  EXPECT_TRUE(memory.fits(100 * kMebibyte));
  EXPECT_FALSE(memory.fits(150 * kMebibyte));
}

TEST(MemoryMonitorTest, NothingIsRefusedByAnOldFigure) {
  MemoryMonitor memory;
  memory.set_limit(memory.refresh() + 200 * kMebibyte);
  auto array = BitArray::allocate(150 * kMebibyte * 8);
  EXPECT_FALSE(memory.fits(100 * kMebibyte));
  array.reset();
  EXPECT_TRUE(memory.fits(100 * kMebibyte));
}

TEST(MemoryMonitorTest, ALoweredLimitIsKnownAtOnce) {
  MemoryMonitor memory;
  EXPECT_TRUE(memory.fits(4 * kMebibyte));
  memory.set_limit(memory.used_bytes() + kMebibyte);
  EXPECT_FALSE(memory.fits(4 * kMebibyte));
  EXPECT_LE(memory.available_bytes(), 2 * kMebibyte);
}

TEST(MemoryMonitorTest, DeletedFiltersMakeRoomBeforeTheyAreFreed) {
  core::keyspace::Reclaimer reclaimer;
  MemoryMonitor memory;
  memory.set_reclaimer(&reclaimer);
  memory.set_limit(memory.refresh() + 200 * kMebibyte);
  for (int i = 0; i < 8; ++i) {
    EntryPtr entry = entry_with_filter(100'000'000);  // the filter's array has 121 MB
    ASSERT_FALSE(memory.fits(100 * kMebibyte));
    // Touches 32 MiB of the array, so that its deletion returns these pages to the system.
    const auto bytes = entry->filter().mutable_layer_bits(0).bytes();
    std::memset(bytes.data(), 1, 32 * kMebibyte);
    reclaimer.drop(std::move(entry));
    ASSERT_TRUE(memory.fits(100 * kMebibyte)) << i;
    while (reclaimer.pending() != 0) std::this_thread::yield();
  }
}

TEST(MemoryMonitorTest, TheHeapIsCountedExactly) {
  MemoryMonitor memory;
  const uint64_t before = memory.refresh();
  constexpr size_t kSize = 4096;  // jemalloc adds no bytes to a block of this size
  std::vector<std::unique_ptr<char[]>> blocks;
  blocks.reserve(1000);
  const uint64_t reserved = memory.refresh() - before;
  for (int i = 0; i < 1000; ++i) blocks.push_back(std::make_unique<char[]>(kSize));
  // Allocators other than jemalloc have other size classes, so the comparison needs a tolerance.
  const double tolerance = core::thread_heap_bytes() ? 0 : 1000 * kSize / 4;
  const auto grown = [&] { return static_cast<double>(memory.refresh() - before - reserved); };
  EXPECT_NEAR(grown(), 1000 * kSize, tolerance);
  // Freed blocks no longer count as used, even while the thread caches them for later allocations.
  blocks.resize(500);
  EXPECT_NEAR(grown(), 500 * kSize, tolerance);
  std::thread([&blocks] {
    core::count_thread_heap();
    blocks.resize(0);
  }).join();
  EXPECT_LT(memory.refresh(), before + reserved + 50'000);
}

TEST(MemoryMonitorTest, ExemptMemoryIsUsedButNotLimited) {
  MemoryMonitor memory;
  uint64_t exempt_bytes = 0;
  memory.set_exempt([&exempt_bytes] { return exempt_bytes; });
  memory.set_limit(memory.refresh() + kMebibyte);
  const std::vector<char> buffer(2 * kMebibyte);
  EXPECT_TRUE(memory.over_limit());
  // Measures before fits() is called, because fits() may otherwise use an older
  // measurement.
  memory.measure_available();
  EXPECT_FALSE(memory.fits(kMebibyte / 2));
  exempt_bytes = buffer.size();
  EXPECT_FALSE(memory.over_limit());
  EXPECT_TRUE(memory.fits(kMebibyte / 2));
  EXPECT_GT(memory.refresh(), memory.limit_bytes());
  const auto parts = memory.parts();
  EXPECT_EQ(parts.used() - parts.evictable(), 2 * kMebibyte);
}

TEST(MemoryMonitorTest, BytesThatAnotherThreadReservesAreTaken) {
  MemoryMonitor memory;
  memory.set_limit(memory.refresh() + 4 * kMebibyte);
  const MemoryMonitor::Reservation own(memory, 3 * kMebibyte);
  EXPECT_FALSE(memory.over_limit(3 * kMebibyte)) << "its own";
  std::thread([&memory] {
    EXPECT_TRUE(memory.over_limit(3 * kMebibyte));
    EXPECT_FALSE(memory.over_limit(kMebibyte / 2));
    EXPECT_FALSE(memory.over_limit()) << "a command that needs no memory";
  }).join();
}

TEST(MemoryMonitorTest, TheLimitIsAskedWithinWhatThreadsMayTake) {
  MemoryMonitor memory;
  memory.set_limit(memory.refresh() + 10 * kMebibyte);
  std::vector<std::unique_ptr<char[]>> blocks;
  blocks.reserve(5000);
  while (!memory.over_limit()) blocks.push_back(std::make_unique<char[]>(4096));
  EXPECT_LE(memory.refresh(), memory.limit_bytes() + 8192);
  EXPECT_GT(memory.refresh(), memory.limit_bytes());
  // over_limit() stays true until enough memory has been freed.
  EXPECT_TRUE(memory.over_limit());
  blocks.resize(blocks.size() - 10);
  EXPECT_FALSE(memory.over_limit());
  EXPECT_TRUE(memory.over_limit(kMebibyte)) << "with the announced bytes";
}

}  // namespace
}  // namespace server
