// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/array_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/support/madvise_probe.h"

namespace core::bloom {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kArrayBytes = 64 * kMiB;

char* bytes_of(void* memory) {
  return static_cast<char*>(memory);
}

// Runs `act` in a forked child and returns its result.
bool in_child(const std::function<bool()>& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act() ? 0 : 1);
  int status = 1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Returns the offsets of the array's touched pages, as next_data() finds them. The memory's Tail
// record is in a page after the array, so that page is not returned.
std::vector<uint64_t> pages_of(const ArrayMemory& memory, const void* array) {
  std::vector<uint64_t> pages;
  const auto next = [&](uint64_t offset) { return memory.next_data(array, kArrayBytes, offset); };
  for (uint64_t at = next(0); at < kArrayBytes; at = next(at + kArrayPageBytes))
    pages.push_back(at);
  return pages;
}

class ArrayMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (memory_.descriptor() < 0) GTEST_SKIP() << "this system has no files in memory";
  }
  ArrayMemory memory_{ArrayMemory::kFileBytesMax};
};

TEST_F(ArrayMemoryTest, KnowsWhichPagesWereTouched) {
  if (support::madvise_is_ignored()) GTEST_SKIP() << "madvise() is emulated";
  char* const array = bytes_of(memory_.map(kArrayBytes));
  ASSERT_NE(array, nullptr);
  EXPECT_EQ(pages_of(memory_, array), std::vector<uint64_t>{});
  array[5 * kMiB + 7] = 1;
  array[kArrayBytes - 1] = 1;
  const std::vector<uint64_t> expected{5 * kMiB, kArrayBytes - kArrayPageBytes};
  EXPECT_EQ(pages_of(memory_, array), expected);
  EXPECT_EQ(memory_.next_data(array, kArrayBytes, 5 * kMiB + 9), 5 * kMiB + 9);
  EXPECT_EQ(memory_.next_data(array, kArrayBytes, kArrayBytes), kArrayBytes);
  EXPECT_TRUE(in_child([&] { return pages_of(memory_, array) == expected; }));
  EXPECT_EQ(memory_.reserved_bytes(), kArrayBytes);
  EXPECT_LT(memory_.resident_bytes(), 16 * kArrayPageBytes);
  memory_.unmap(array, kArrayBytes);
  EXPECT_EQ(memory_.reserved_bytes(), 0U);
  EXPECT_EQ(memory_.resident_bytes(), 0U);
}

TEST_F(ArrayMemoryTest, PagesOfNeighbourArraysDoNotCount) {
  char* const first = bytes_of(memory_.map(kArrayBytes));
  char* const second = bytes_of(memory_.map(kArrayBytes));
  second[0] = 1;
  EXPECT_EQ(pages_of(memory_, first), std::vector<uint64_t>{});
  EXPECT_EQ(pages_of(memory_, second), std::vector<uint64_t>{0});
  memory_.unmap(first, kArrayBytes);
  EXPECT_EQ(second[0], 1);
  memory_.unmap(second, kArrayBytes);
}

TEST_F(ArrayMemoryTest, FreedArrayKeepsItsBitsWhileAChildReadsThem) {
  if (support::madvise_is_ignored()) GTEST_SKIP() << "madvise() is emulated";
  char* const array = bytes_of(memory_.map(kArrayBytes));
  array[3 * kMiB] = 42;
  auto guard = std::make_unique<ArrayMemory::ChildGuard>(memory_);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char word = 0;
    const bool was_freed = ::read(pipe[0], &word, 1) == 1;
    ::_exit(was_freed && array[3 * kMiB] == 42 ? 0 : 1);
  }
  memory_.unmap(array, kArrayBytes);
  EXPECT_GT(memory_.resident_bytes(), 0U);
  EXPECT_EQ(memory_.reserved_bytes(), 0U);
  EXPECT_EQ(memory_.kept_bytes(), kArrayBytes);
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  guard.reset();
  EXPECT_EQ(memory_.resident_bytes(), 0U);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(ArrayMemoryTest, OnlyArraysVisibleToAChildAreKept) {
  if (support::madvise_is_ignored()) GTEST_SKIP() << "madvise() is emulated";
  const auto touched = [&] {
    char* const array = bytes_of(memory_.map(kArrayBytes));
    array[0] = 1;
    return array;
  };
  char* const old = touched();
  char* const freed_before = touched();
  memory_.unmap(freed_before, kArrayBytes);
  auto first = std::make_unique<ArrayMemory::ChildGuard>(memory_);
  // This array is mapped during the fork, so the child may or may not see it.
  char* const amid = touched();
  first->finish_fork();
  char* const young = touched();
  memory_.unmap(young, kArrayBytes);
  EXPECT_EQ(memory_.kept_bytes(), 0U);
  memory_.unmap(amid, kArrayBytes);
  memory_.unmap(old, kArrayBytes);
  EXPECT_EQ(memory_.kept_bytes(), 2 * kArrayBytes);
  // A child forked now cannot read the freed arrays, but can read the arrays that are mapped now.
  char* const middle = touched();
  auto second = std::make_unique<ArrayMemory::ChildGuard>(memory_);
  second->finish_fork();
  memory_.unmap(middle, kArrayBytes);
  EXPECT_EQ(memory_.kept_bytes(), 3 * kArrayBytes);
  first.reset();
  EXPECT_EQ(memory_.kept_bytes(), kArrayBytes);
  second.reset();
  EXPECT_EQ(memory_.kept_bytes(), 0U);
  EXPECT_EQ(memory_.resident_bytes(), 0U);
}

TEST_F(ArrayMemoryTest, ChildNeitherUsesNorFreesParentRanges) {
  char* const array = bytes_of(memory_.map(kArrayBytes));
  array[0] = 42;
  EXPECT_TRUE(in_child([&] {
    char* const own = bytes_of(memory_.map(kArrayBytes));
    own[0] = 1;
    memory_.unmap(array, kArrayBytes);
    return own[0] == 1;
  }));
  EXPECT_EQ(array[0], 42);
  char* const next = bytes_of(memory_.map(kArrayBytes));
  EXPECT_EQ(next[0], 0);
  memory_.unmap(next, kArrayBytes);
  memory_.unmap(array, kArrayBytes);
}

TEST_F(ArrayMemoryTest, ImpossibleSizesUseNoOffsets) {
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(memory_.map(uint64_t{1} << 52), nullptr);
  void* const array = memory_.map(kArrayBytes);
  EXPECT_EQ(pages_of(memory_, array), std::vector<uint64_t>{});
  memory_.unmap(array, kArrayBytes);
}

// In an ArrayMemory without a file, every page counts as touched.
void expect_plain_memory(ArrayMemory& memory) {
  char* const array = bytes_of(memory.map(kArrayBytes));
  ASSERT_NE(array, nullptr);
  array[kArrayBytes - 1] = 1;
  EXPECT_EQ(memory.next_data(array, kArrayBytes, 12345), 12345U);
  EXPECT_EQ(memory.next_data(array, kArrayBytes, kArrayBytes), kArrayBytes);
  EXPECT_EQ(memory.resident_bytes(), kArrayBytes);
  memory.unmap(array, kArrayBytes);
  EXPECT_EQ(memory.resident_bytes(), 0U);
  EXPECT_EQ(memory.reserved_bytes(), 0U);
}

TEST(ArrayMemory, WithoutAFileEveryPageCounts) {
  ArrayMemory memory(0);
  EXPECT_EQ(memory.descriptor(), -1);
  expect_plain_memory(memory);
}

TEST(ArrayMemory, FileSizeLimitIsRespected) {
  EXPECT_TRUE(in_child([] {
    // If the file of `memory` grew beyond this limit, SIGXFSZ would end the process.
    const struct rlimit limit = {kMiB, kMiB};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    ArrayMemory memory(ArrayMemory::kFileBytesMax);
    expect_plain_memory(memory);
    return !testing::Test::HasFailure();
  }));
}

}  // namespace
}  // namespace core::bloom
