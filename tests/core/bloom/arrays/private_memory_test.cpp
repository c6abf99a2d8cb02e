// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/private_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/bloom/arrays/bit_array.h"
#include "tests/support/madvise_probe.h"

namespace core::bloom {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kPrivateBytes = 64 * kMebibyte + 100;

// Runs `act` in a forked child and returns its result.
bool is_so_in_child(const std::function<bool()>& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act() ? 0 : 1);
  int status = 1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Returns the offsets of the touched pages that next_data() and data_end() find.
std::vector<uint64_t> walk(const PrivateMemory& memory, const void* array) {
  std::vector<uint64_t> pages;
  const auto next = [&](uint64_t offset) { return memory.next_data(array, kPrivateBytes, offset); };
  for (uint64_t at = next(0); at < kPrivateBytes; at = next(at)) {
    const uint64_t end = memory.data_end(array, kPrivateBytes, at);
    for (; at < end; at += kArrayPageBytes) pages.push_back(at);
  }
  return pages;
}

// Returns the line VmFlags of the mapping that contains `memory`, from /proc/self/smaps. proc(5)
// describes the file.
std::string flags_of(const void* memory) {
  std::ifstream maps("/proc/self/smaps");
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      const auto address = reinterpret_cast<uintptr_t>(memory);
      is_inside = begin <= address && address < end;
    }
    if (is_inside && line.starts_with("VmFlags:")) return line;
  }
  return "";
}

TEST(PrivateMemoryTest, KnowsWhichPagesWereTouched) {
  PrivateMemory& memory = PrivateMemory::of_process();
  const uint64_t reserved = memory.reserved_bytes();
  const uint64_t resident = memory.resident_bytes();
  char* const array = static_cast<char*>(memory.map(kPrivateBytes));
  ASSERT_NE(array, nullptr);
  EXPECT_EQ(memory.reserved_bytes() - reserved, kPrivateBytes);
  EXPECT_EQ(memory.resident_bytes(), resident);
  EXPECT_EQ(walk(memory, array), std::vector<uint64_t>{});
  std::vector<uint64_t> touched;
  constexpr uint32_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  for (uint64_t page = 0; page * kArrayPageBytes < kPrivateBytes; ++page) {
    // The array has both short and long runs of touched pages, and its last page is not full.
    const bool is_dense = page / 1500 % 2 == 0;
    if (random() % 100 >= (is_dense ? 98 : 3)) continue;
    touched.push_back(page * kArrayPageBytes);
    array[touched.back() + random() % 100] = 1;
  }
  EXPECT_EQ(walk(memory, array), touched) << "seed " << kSeed;
  EXPECT_TRUE(is_so_in_child([&] { return walk(memory, array) == touched; }));
  EXPECT_EQ(memory.resident_bytes() - resident, touched.size() * kArrayPageBytes);
  const uint64_t inside = touched[3] + 9;
  EXPECT_EQ(memory.next_data(array, kPrivateBytes, inside), inside);
  EXPECT_EQ(memory.next_data(array, kPrivateBytes, kPrivateBytes), kPrivateBytes);
  memory.unmap(array, kPrivateBytes);
  EXPECT_EQ(memory.reserved_bytes(), reserved);
  EXPECT_EQ(memory.resident_bytes(), resident);
}

// With huge pages, one touched byte would take 2 MiB where the system enables them for all memory.
TEST(PrivateMemoryTest, HugePagesAreDisabled) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    GTEST_SKIP() << "this kernel has no huge pages";
  }
  if (support::madvise_is_ignored()) GTEST_SKIP() << "madvise() is emulated";
  PrivateMemory& memory = PrivateMemory::of_process();
  void* const array = memory.map(kPrivateBytes);
  ASSERT_NE(array, nullptr);
  EXPECT_THAT(flags_of(array), testing::HasSubstr(" nh"));
  memory.unmap(array, kPrivateBytes);
}

TEST(PrivateMemoryTest, EveryPageCountsAsTouchedWithoutThePageMap) {
  PrivateMemory memory("/nowhere/pagemap");
  char* const array = static_cast<char*>(memory.map(kPrivateBytes));
  ASSERT_NE(array, nullptr);
  EXPECT_EQ(walk(memory, array).size(), kPrivateBytes / kArrayPageBytes + 1);
  EXPECT_EQ(memory.next_data(array, kPrivateBytes, 5000), 5000U);
  memory.unmap(array, kPrivateBytes);
}

TEST(PrivateMemoryTest, BigPrivateArraysCostTheirTouchedPagesOnly) {
  const uint64_t resident = PrivateMemory::of_process().resident_bytes();
  auto array = BitArray::allocate(uint64_t{6} * 1000 * 1000 * 1000 * 8, ArraySharing::kPrivate);
  ASSERT_TRUE(array);
  EXPECT_TRUE(array->is_mapped());
  EXPECT_FALSE(array->is_shared());
  const uint64_t word_count = array->size_bytes() / 8;
  for (uint64_t i = 0; i < 100; ++i) array->words()[word_count / 100 * i] = 1;
  const auto copy = array->clone();
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->count_ones(), 100U);
  EXPECT_EQ(array->count_ones(), 100U);
  const std::vector<std::byte> zeros(10 * kMebibyte);
  array->write(100, zeros);
  EXPECT_EQ(PrivateMemory::of_process().resident_bytes() - resident, 200 * kArrayPageBytes);
}

}  // namespace
}  // namespace core::bloom
