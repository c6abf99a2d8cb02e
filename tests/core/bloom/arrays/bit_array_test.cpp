// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/bit_array.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/cpu_time.h"
#include "tests/support/madvise_probe.h"

namespace core::bloom {
namespace {

uint64_t resident_bytes() {
  uint64_t total_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * 4096;
}

TEST(BitArrayTest, IsZeroedAndSizedInWholeWords) {
  for (const uint64_t bit_count : {1ULL, 16ULL, 64ULL, 65ULL, 512ULL, 1024ULL, 9'000'000ULL}) {
    const auto array = BitArray::allocate(bit_count);
    ASSERT_TRUE(array);
    EXPECT_EQ(array->bit_count(), bit_count);
    EXPECT_EQ(array->bytes().size(), (bit_count + 7) / 8);
    EXPECT_EQ(array->count_ones(), 0U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array->words()) % 8, 0U);
  }
}

TEST(BitArrayTest, WholeLinesAreAlignedToThem) {
  for (const uint64_t lines : {1, 2, 3, 20, 40000}) {
    const auto array = BitArray::allocate(lines * 512);
    ASSERT_TRUE(array);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array->words()) % 64, 0U);
  }
}

TEST(BitArrayTest, ImpossibleSizesAreRejected) {
  EXPECT_FALSE(BitArray::allocate(0));
  EXPECT_FALSE(BitArray::allocate(BitArray::kMaxBits));
  EXPECT_FALSE(BitArray::allocate(std::numeric_limits<uint64_t>::max()));
}

TEST(BitArrayTest, SixGigabytesTakeOnlyTheirTouchedPages) {
  if (support::madvise_is_ignored()) GTEST_SKIP() << "madvise() is emulated";
  const uint64_t before_bytes = resident_bytes();
  const double start_ms = support::cpu_ms();
  auto array = BitArray::allocate(uint64_t{6} * 1000 * 1000 * 1000 * 8);
  const double elapsed_ms = support::cpu_ms() - start_ms;
  ASSERT_TRUE(array);
  EXPECT_LT(elapsed_ms, 100);
  const uint64_t word_count = array->size_bytes() / 8;
  for (uint64_t i = 0; i < 100; ++i) array->words()[word_count / 100 * i] = i;
  EXPECT_EQ(array->words()[word_count / 100 * 99], 99U);
  EXPECT_LT(resident_bytes(), before_bytes + (8U << 20));
}

TEST(BitArrayTest, SampledFillIsNearTheExactOne) {
  constexpr uint32_t kSeed = 5;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937_64 random(kSeed);
  // The size of the array is such that neither the last page nor the last word is full.
  auto array = BitArray::allocate(9'000'001);
  ASSERT_TRUE(array);
  for (uint64_t i = 0; i < array->bit_count() / 2; ++i) {
    const uint64_t bit = random() % array->bit_count();
    array->words()[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  const double exact = double(array->count_ones()) / double(array->bit_count());
  EXPECT_EQ(array->fill_ratio(array->size_bytes()), exact);
  for (const uint64_t max_bytes : {0, 4096, 65536, 700'000, 1'100'000}) {
    const double bits = double(std::max<uint64_t>(max_bytes, 4096)) * 8;
    const double slack = 4 * std::sqrt(exact * (1 - exact) / bits);
    EXPECT_NEAR(array->fill_ratio(max_bytes), exact, slack) << max_bytes << " seed " << kSeed;
    EXPECT_EQ(array->fill_ratio(max_bytes), array->fill_ratio(max_bytes));
  }
}

TEST(BitArrayTest, SampleReachesTheWholeArray) {
  auto array = BitArray::allocate(uint64_t{4096} * 8 * 1900);
  ASSERT_TRUE(array);
  // Only the last quarter is full, so the sample must reach the end of the array.
  const uint64_t word_count = array->size_bytes() / 8;
  std::fill(array->words() + word_count / 4 * 3, array->words() + word_count, ~uint64_t{0});
  EXPECT_NEAR(array->fill_ratio(4'096'000), 0.25, 0.002);
}

TEST(BitArrayTest, SamplingAHugeArrayTouchesOnlyTheSample) {
  auto array = BitArray::allocate(uint64_t{6} * 1000 * 1000 * 1000 * 8);
  ASSERT_TRUE(array);
  const uint64_t before_bytes = resident_bytes();
  EXPECT_EQ(array->fill_ratio(4 << 20), 0);
#if !defined(BLOOMERY_ASAN) && !defined(BLOOMERY_TSAN)
  // Resident memory is not checked under sanitizers, because the shadow memory of the bytes read is
  // resident too.
  EXPECT_LT(resident_bytes(), before_bytes + (16U << 20));
#else
  (void)before_bytes;
#endif
}

TEST(BitArrayTest, CloneIsEqualAndSeparate) {
  for (const uint64_t bit_count : {777ULL, 1024ULL, 20'000'000ULL}) {
    auto array = *BitArray::allocate(bit_count);
    array.words()[0] = 5;
    array.words()[array.size_bytes() / 8 - 1] = 3;
    const auto copy = array.clone();
    ASSERT_TRUE(copy);
    EXPECT_TRUE(std::ranges::equal(array.bytes(), copy->bytes()));
    array.words()[0] = 0;
    EXPECT_EQ(copy->words()[0], 5U);
  }
}

TEST(BitArrayTest, MappedArrayIsSharedWithAForkedChild) {
  auto array = *BitArray::allocate(BitArray::kMappedBytes * 8);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    array.words()[17] = 42;
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(array.words()[17], 42U);
}

// Returns an array of 64 MiB with bits in three pages.
BitArray sparse_array() {
  auto array = *BitArray::allocate(uint64_t{64} << 23);
  for (const uint64_t word : {uint64_t{9}, uint64_t{1} << 20, array.size_bytes() / 8 - 1}) {
    array.words()[word] = 7;
  }
  return array;
}

uint64_t array_bytes() {
  return ArrayMemory::of_process().resident_bytes();
}

constexpr uint64_t kFewPages = 16 * kArrayPageBytes;

TEST(BitArrayTest, WholeArrayIsReadWithoutTouchingItsHoles) {
  const uint64_t before_bytes = array_bytes();
  const BitArray array = sparse_array();
  const auto copy = array.clone();
  EXPECT_EQ(copy->count_ones(), 9U);
  EXPECT_EQ(copy->words()[9], 7U);
  const auto read = [&array] {
    std::vector<uint64_t> visited;
    array.visit_data(100, array.bytes().size(), [&](uint64_t offset, auto data) {
      visited.push_back(offset);
      EXPECT_TRUE(data.data() == array.bytes().data() + offset);
    });
    const std::vector<uint64_t> expected{100, 8 << 20, (64 << 20) - kArrayPageBytes};
    EXPECT_EQ(visited, expected);
    EXPECT_EQ(array.count_ones(), 9U);
    EXPECT_EQ(array.fill_ratio(1 << 20), array.fill_ratio(1 << 20));
    return !testing::Test::HasFailure();
  };
  EXPECT_TRUE(read());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(read() ? 0 : 1);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_LT(array_bytes() - before_bytes, kFewPages);
}

// The source has long runs of data, whose pages are populated in one call, between zeros that
// remain holes.
TEST(BitArrayTest, WrittenRunsTakePagesAndZerosDoNot) {
  constexpr uint32_t kSeed = 13;
  for (const auto sharing : {ArraySharing::kShared, ArraySharing::kPrivate}) {
    std::mt19937_64 random(kSeed);
    std::vector<std::byte> source((size_t{12} << 20) - 100);
    std::vector<bool> is_data(source.size() / kArrayPageBytes + 1);
    for (size_t at = 0, run = 0; at < source.size(); at += run) {
      run = std::min<size_t>(source.size() - at, kArrayPageBytes << random() % 10);
      if (random() % 2 == 0) continue;
      for (size_t i = at; i < at + run; ++i) source[i] = std::byte{0x5A};
      for (size_t i = at; i < at + run; i += kArrayPageBytes) is_data[i / kArrayPageBytes] = true;
    }
    BitArray array = *BitArray::allocate(source.size() * 8, sharing);
    // The array is written in pieces that end at arbitrary offsets.
    for (size_t at = 0, size = 0; at < source.size(); at += size) {
      size = std::min<size_t>(source.size() - at, 1 + random() % (4 << 20));
      array.write(at, std::span(source).subspan(at, size));
    }
    std::vector<bool> touched(is_data.size());
    array.visit_data(0, array.bytes().size(),
                     [&](uint64_t offset, auto) { touched[offset / kArrayPageBytes] = true; });
    EXPECT_EQ(touched, is_data);
    EXPECT_TRUE(std::ranges::equal(array.bytes(), source)) << "seed " << kSeed;
  }
}

TEST(BitArrayTest, EveryTouchedPageIsVisited) {
  constexpr uint32_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  BitArray array = *BitArray::allocate((uint64_t{16} << 23) - 500);
  std::vector<uint64_t> touched;
  for (uint64_t page = 0; page < array.bytes().size() / kArrayPageBytes; ++page) {
    // The array has both short and long runs of touched pages.
    const bool is_dense = page / 300 % 2 == 0;
    if (random() % 100 >= (is_dense ? 98 : 3)) continue;
    touched.push_back(page * kArrayPageBytes);
    array.bytes()[touched.back() + random() % kArrayPageBytes] = std::byte{1};
  }
  touched.push_back(array.bytes().size() / kArrayPageBytes * kArrayPageBytes);
  array.bytes()[array.bytes().size() - 1] = std::byte{1};
  std::vector<uint64_t> visited;
  array.visit_data(0, array.bytes().size(), [&](uint64_t offset, auto data) {
    visited.push_back(offset);
    EXPECT_EQ(data.size(), std::min(kArrayPageBytes, array.bytes().size() - offset));
  });
  EXPECT_EQ(visited, touched) << "seed " << kSeed;
}

TEST(BitArrayTest, ZerosAreWrittenOverBitsOnly) {
  const uint64_t before_bytes = array_bytes();
  BitArray array = sparse_array();
  const std::vector<std::byte> zeros(array.bytes().size() - 1000);
  array.write(500, zeros);
  EXPECT_LT(array_bytes() - before_bytes, kFewPages);
  // The write did not cover the ends of the array, so their set bits remain.
  EXPECT_EQ(array.count_ones(), 6U);
  const std::vector<std::byte> ones(10000, std::byte{255});
  array.write(4090, ones);
  EXPECT_EQ(array.count_ones(), 6U + 80000);
  EXPECT_EQ(array.bytes()[4089], std::byte{0});
  EXPECT_EQ(array.bytes()[4090], std::byte{255});
}

TEST(BitArrayTest, FreedArrayReturnsItsMemory) {
  if (support::madvise_is_ignored()) GTEST_SKIP() << "madvise() is emulated";
  const uint64_t before_bytes = array_bytes();
  {
    BitArray array = *BitArray::allocate(uint64_t{8} << 23);
    std::ranges::fill(array.bytes(), std::byte{1});
    EXPECT_GE(array_bytes() - before_bytes, uint64_t{8} << 20);
  }
  EXPECT_EQ(array_bytes(), before_bytes);
}

// Forks a child, then calls `change`. Returns true if the child still sees word 17 unchanged.
template <class BeforeInChild, class Change>
bool child_sees_no_change(BitArray& array, BeforeInChild&& before, Change&& change) {
  std::array<int, 2> ready{};
  std::array<int, 2> changed{};
  EXPECT_EQ(::pipe(ready.data()), 0);
  EXPECT_EQ(::pipe(changed.data()), 0);
  const ArrayMemory::ChildGuard guard;
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    before();
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(changed[0], &byte, 1);
    ::_exit(array.words()[17] == 42 ? 0 : 1);
  }
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  change();
  EXPECT_EQ(::write(changed[1], &byte, 1), 1);
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  for (const int end : {ready[0], ready[1], changed[0], changed[1]}) ::close(end);
  return status == 0;
}

TEST(BitArrayTest, DetachedArrayIsInvisibleToChildren) {
  auto array = *BitArray::allocate(BitArray::kMappedBytes * 8);
  array.words()[17] = 42;
  const auto set = [&array] { array.words()[17] |= 5; };
  EXPECT_TRUE(child_sees_no_change(
      array, [] {},
      [&] {
        EXPECT_TRUE(array.detach_from_children());
        set();
      }));
  EXPECT_EQ(array.words()[17], 47U);
  array.words()[17] = 42;
  // After the child has called detach_from_children(), a new array of the parent must not overwrite
  // the child's bits.
  EXPECT_TRUE(child_sees_no_change(
      array, [&] { (void)array.detach_from_children(); },
      [&] {
        auto other = *BitArray::allocate(BitArray::kMappedBytes * 8);
        EXPECT_EQ(other.count_ones(), 0U);
        std::ranges::fill(other.bytes(), std::byte{255});
        set();
      }));
}

TEST(BitArrayTest, ChildrenSeePrivateArraysAsTheyWere) {
  auto array = *BitArray::allocate(BitArray::kMappedBytes * 8, ArraySharing::kPrivate);
  EXPECT_FALSE(array.is_shared());
  EXPECT_EQ(array.count_ones(), 0U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array.words()) % 64, 0U);
  array.words()[17] = 42;
  EXPECT_TRUE(child_sees_no_change(
      array, [] {}, [&array] { array.words()[17] |= 5; }));
  EXPECT_EQ(array.words()[17], 47U);
  const auto copy = array.clone();
  ASSERT_TRUE(copy);
  EXPECT_FALSE(copy->is_shared());
  EXPECT_EQ(copy->words()[17], 47U);
  const uint64_t* const words = array.words();
  EXPECT_TRUE(array.detach_from_children());
  EXPECT_EQ(array.words(), words);
}

TEST(BitArrayTest, MovedFromArrayIsEmpty) {
  auto array = *BitArray::allocate(512);
  const BitArray other = std::move(array);
  EXPECT_EQ(other.bit_count(), 512U);
  EXPECT_EQ(array.bit_count(), 0U);  // NOLINT: the state after a move is part of the contract.
}

}  // namespace
}  // namespace core::bloom
