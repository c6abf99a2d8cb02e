// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/bloom/arrays/array_memory.h"
#include "tests/support/madvise_probe.h"

namespace core::bloom {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kPiece = HugePages::kPieceBytes;
constexpr uint64_t kBigBytes = 64 * kMiB;
constexpr uint64_t kPieces = kBigBytes / kPiece;
using Step = HugePages::Step;

// In these tests a function of the test collapses the pieces of memory, instead of the kernel.
class HugePagesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (memory_.descriptor() < 0) GTEST_SKIP() << "this system has no files in memory";
    if (support::madvise_is_ignored()) GTEST_SKIP() << "madvise() is emulated";
  }

  char* map(uint64_t size_bytes = kBigBytes) { return static_cast<char*>(memory_.map(size_bytes)); }
  static void touch(char* array, uint64_t piece) { std::memset(array + piece * kPiece, 1, kPiece); }
  // Runs steps until the end of the pass. Returns how many pieces were collapsed.
  unsigned pass() {
    unsigned collapsed = 0;
    for (;;) {
      const Step step = pages_.step();
      if (step == Step::kPassEnded) return collapsed;
      if (step == Step::kCollapsed) ++collapsed;
      if (step == Step::kUnsupported) return 0;
    }
  }

  std::vector<char*> asked_;  // the pieces that step() tried to collapse
  std::function<int(char*)> on_collapse_ = [](char*) { return 0; };
  HugePages pages_{[this](void* piece, size_t size_bytes) {
    EXPECT_EQ(size_bytes, kPiece);
    asked_.push_back(static_cast<char*>(piece));
    return on_collapse_(static_cast<char*>(piece));
  }};
  ArrayMemory memory_{ArrayMemory::kFileBytesMax, &pages_};
};

TEST_F(HugePagesTest, OnlyWhollyTouchedPiecesAreCollapsed) {
  char* const array = map();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array) % kPiece, 0U);
  EXPECT_EQ(pass(), 0U);
  for (const uint64_t piece : {0, 3, 30}) touch(array, piece);
  for (uint64_t page = 0; page + 1 < kPiece / kArrayPageBytes; ++page) {
    array[5 * kPiece + page * kArrayPageBytes] = 1;
  }
  EXPECT_EQ(pass(), 3U);
  EXPECT_EQ(asked_, (std::vector<char*>{array, array + 3 * kPiece, array + 30 * kPiece}));
  EXPECT_EQ(pages_.huge_bytes(), 3 * kPiece);
  array[6 * kPiece - 1] = 1;
  EXPECT_EQ(pass(), 1U);
  EXPECT_EQ(asked_.back(), array + 5 * kPiece);
  EXPECT_EQ(pass(), 0U);
  EXPECT_EQ(pages_.huge_bytes(), 4 * kPiece);
  memory_.unmap(array, kBigBytes);
  EXPECT_EQ(pages_.huge_bytes(), 0U);
}

TEST_F(HugePagesTest, SmallArraysKeepSmallPages) {
  constexpr uint64_t kSmallBytes = HugePages::kArrayBytesMin - kPiece;
  char* const array = map(kSmallBytes);
  std::memset(array, 1, kSmallBytes);
  EXPECT_EQ(pass(), 0U);
  EXPECT_TRUE(asked_.empty());
  memory_.unmap(array, kSmallBytes);
}

TEST_F(HugePagesTest, AStepEndsWithinAFewPieces) {
  constexpr uint64_t kGiantBytes = uint64_t{1} << 40;
  char* const array = map(kGiantBytes);
  ASSERT_NE(array, nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pages_.step(), Step::kContinues);
  touch(array, 3 * HugePages::kPiecesPerStep + 1);
  EXPECT_EQ(pages_.step(), Step::kCollapsed);
  EXPECT_LT(memory_.resident_bytes(), kPiece + kMiB);
  memory_.unmap(array, kGiantBytes);
}

TEST_F(HugePagesTest, APassVisitsAllArrays) {
  std::vector<char*> arrays;
  for (int i = 0; i < 5; ++i) {
    arrays.push_back(map());
    touch(arrays.back(), kPieces - 1);
  }
  EXPECT_EQ(pass(), 5U);
  memory_.unmap(arrays[2], kBigBytes);
  EXPECT_EQ(pages_.huge_bytes(), 4 * kPiece);
  touch(arrays[3], 0);
  EXPECT_EQ(pages_.step(), Step::kCollapsed);
  memory_.unmap(arrays[3], kBigBytes);
  EXPECT_EQ(pass(), 0U);
  EXPECT_EQ(pages_.huge_bytes(), 3 * kPiece);
  for (const size_t i : {0, 1, 4}) memory_.unmap(arrays[i], kBigBytes);
}

TEST_F(HugePagesTest, TransientErrorsAreRetried) {
  char* const array = map();
  touch(array, 7);
  for (const int error_number : {ENOMEM, EBUSY, EAGAIN, ENOMEM, EBUSY, EAGAIN}) {
    on_collapse_ = [=](char*) { return error_number; };
    EXPECT_EQ(pages_.step(), error_number == EAGAIN ? Step::kContinues : Step::kFailed);
    EXPECT_EQ(pass(), 0U);
  }
  EXPECT_EQ(pages_.huge_bytes(), 0U);
  on_collapse_ = [](char*) { return 0; };
  EXPECT_EQ(pass(), 1U);
  memory_.unmap(array, kBigBytes);
}

TEST_F(HugePagesTest, KernelWithoutTheCallIsNoticed) {
  char* const array = map();
  std::memset(array, 1, kBigBytes);
  on_collapse_ = [](char*) { return EINVAL; };
  for (unsigned i = 1; i < HugePages::kRejectionsMax; ++i) {
    EXPECT_EQ(pages_.step(), Step::kFailed);
  }
  EXPECT_EQ(pages_.step(), Step::kUnsupported);
  memory_.unmap(array, kBigBytes);
}

TEST_F(HugePagesTest, ErrorsAfterASuccessAreNoMissingCall) {
  char* const array = map();
  std::memset(array, 1, kBigBytes);
  EXPECT_EQ(pages_.step(), Step::kCollapsed);
  on_collapse_ = [](char*) { return EINVAL; };
  for (unsigned i = 0; i < 2 * HugePages::kRejectionsMax; ++i) {
    EXPECT_EQ(pages_.step(), Step::kFailed);
  }
  memory_.unmap(array, kBigBytes);
}

TEST_F(HugePagesTest, ArrayFreedDuringACollapseStaysMapped) {
  char* const array = map();
  std::memset(array, 7, kBigBytes);
  on_collapse_ = [&](char* piece) {
    memory_.unmap(array, kBigBytes);
    EXPECT_EQ(memory_.reserved_bytes(), 0U);
    EXPECT_GE(memory_.resident_bytes(), kBigBytes);
    EXPECT_EQ(piece[kPiece - 1], 7);
    return 0;
  };
  EXPECT_EQ(pages_.step(), Step::kCollapsed);
  EXPECT_EQ(memory_.resident_bytes(), 0U);
  EXPECT_EQ(pages_.huge_bytes(), 0U);
  EXPECT_EQ(pages_.step(), Step::kPassEnded);
}

TEST_F(HugePagesTest, ChildEndsDuringACollapse) {
  char* const array = map();
  std::memset(array, 7, kBigBytes);
  auto guard = std::make_unique<ArrayMemory::ChildGuard>(memory_);
  guard->finish_fork();
  on_collapse_ = [&](char* piece) {
    memory_.unmap(array, kBigBytes);
    EXPECT_EQ(memory_.kept_bytes(), kBigBytes);
    guard.reset();
    EXPECT_EQ(memory_.kept_bytes(), 0U);
    EXPECT_EQ(piece[0], 7);
    return 0;
  };
  EXPECT_EQ(pages_.step(), Step::kCollapsed);
  EXPECT_EQ(memory_.resident_bytes(), 0U);
}

TEST_F(HugePagesTest, ArraysKeptForAChildAreLeftAlone) {
  char* const array = map();
  std::memset(array, 7, kBigBytes);
  auto guard = std::make_unique<ArrayMemory::ChildGuard>(memory_);
  guard->finish_fork();
  EXPECT_EQ(pages_.step(), Step::kCollapsed);
  memory_.unmap(array, kBigBytes);
  EXPECT_EQ(pages_.huge_bytes(), 0U);
  EXPECT_EQ(pages_.step(), Step::kPassEnded);
  EXPECT_EQ(array[kBigBytes - 1], 7);
  guard.reset();
  EXPECT_EQ(memory_.resident_bytes(), 0U);
}

TEST_F(HugePagesTest, ArraysOfAChildAreNotCollapsed) {
  const pid_t child = ::fork();
  if (child == 0) {
    char* const array = map();
    std::memset(array, 1, kBigBytes);
    memory_.unmap(array, kBigBytes);
    ::_exit(asked_.empty() ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pass(), 0U);
}

// Returns how many bytes of this process' shared memory are mapped as huge pages.
uint64_t mapped_huge_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    unsigned long long kibibytes = 0;
    if (std::sscanf(line.c_str(), "ShmemPmdMapped: %llu kB", &kibibytes) == 1) {
      return kibibytes * 1024;
    }
  }
  return 0;
}

bool kernel_collapses_files_in_memory() {
  HugePages pages;
  ArrayMemory memory(ArrayMemory::kFileBytesMax, &pages);
  void* const array = memory.map(kBigBytes);
  std::memset(array, 1, kBigBytes);
  Step step = Step::kFailed;
  for (int i = 0; i < 10 && step == Step::kFailed; ++i) step = pages.step();
  memory.unmap(array, kBigBytes);
  return step == Step::kCollapsed;
}

// In these tests the kernel collapses the pieces of memory (MADV_COLLAPSE).
class KernelHugePagesTest : public testing::Test {
 protected:
  void SetUp() override {
    static const bool is_supported = kernel_collapses_files_in_memory();
    if (!is_supported) GTEST_SKIP() << "the kernel refuses MADV_COLLAPSE on a memfd";
  }
  char* map() { return static_cast<char*>(memory_.map(kBigBytes)); }
  // The kernel may fail now and then, so the pass is repeated until all pieces are collapsed.
  void collapse(uint64_t wanted_bytes) {
    for (int i = 0; i < 100'000 && pages_.huge_bytes() < wanted_bytes; ++i) {
      pages_.step();
    }
  }
  HugePages pages_;
  ArrayMemory memory_{ArrayMemory::kFileBytesMax, &pages_};
};

TEST_F(KernelHugePagesTest, ContentsHolesAndSizesStay) {
  char* const array = map();
  for (uint64_t i = 0; i < kBigBytes / 2; ++i)
    array[i] = static_cast<char>(i * 2'654'435'761 >> 16);
  array[kBigBytes - 1] = 1;
  const std::vector<char> before(array, array + kBigBytes / 2);
  const uint64_t resident = memory_.resident_bytes();
  const uint64_t huge_before = mapped_huge_bytes();
  collapse(kBigBytes / 2);
  EXPECT_EQ(pages_.huge_bytes(), kBigBytes / 2);
  EXPECT_GE(mapped_huge_bytes() - huge_before, kBigBytes / 2);
  EXPECT_EQ(memory_.resident_bytes(), resident);
  EXPECT_EQ(memory_.reserved_bytes(), kBigBytes);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), array));
  EXPECT_EQ(memory_.next_data(array, kBigBytes, 12'345), 12'345U);
  EXPECT_EQ(memory_.next_data(array, kBigBytes, kBigBytes / 2), kBigBytes - kArrayPageBytes);
  EXPECT_EQ(memory_.data_end(array, kBigBytes, 0) % kArrayPageBytes, 0U);
  memory_.unmap(array, kBigBytes);
  EXPECT_EQ(memory_.resident_bytes(), 0U);
  EXPECT_LE(mapped_huge_bytes(), huge_before);
}

TEST_F(KernelHugePagesTest, SparsePiecesTakeNoMemory) {
  char* const array = map();
  for (uint64_t offset = 0; offset < kBigBytes; offset += 4 * kArrayPageBytes) array[offset] = 1;
  const uint64_t resident = memory_.resident_bytes();
  for (uint64_t i = 0; i < 3 * kPieces; ++i) pages_.step();
  EXPECT_EQ(pages_.huge_bytes(), 0U);
  EXPECT_EQ(memory_.resident_bytes(), resident);
  memory_.unmap(array, kBigBytes);
}

TEST_F(KernelHugePagesTest, ForkedChildSharesHugePages) {
  char* const array = map();
  std::memset(array, 7, kBigBytes);
  const pid_t child = ::fork();
  if (child == 0) {
    // The child reads and writes while the parent collapses the same pieces.
    bool is_sound = true;
    for (int round = 0; round < 3; ++round) {
      for (uint64_t i = 1; i < kBigBytes; i += kArrayPageBytes) is_sound &= array[i] == 7;
      for (uint64_t i = 0; i < kBigBytes; i += kArrayPageBytes) array[i] = 9;
    }
    ::_exit(is_sound ? 0 : 1);
  }
  collapse(kBigBytes);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pages_.huge_bytes(), kBigBytes);
  for (uint64_t i = 0; i < kBigBytes; i += kArrayPageBytes) ASSERT_EQ(array[i], 9);
  memory_.unmap(array, kBigBytes);
}

TEST_F(KernelHugePagesTest, MapsFreesAndForksRunBesideIt) {
  std::atomic<bool> is_done{false};
  std::thread collapser([&] {
    while (!is_done) pages_.step();
  });
  for (int round = 0; round < 4; ++round) {
    char* const array = map();
    std::memset(array, round, kBigBytes);
    auto guard = std::make_unique<ArrayMemory::ChildGuard>(memory_);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(array[kBigBytes - 1] == round ? 0 : 1);
    guard->finish_fork();
    for (uint64_t i = 0; i < kBigBytes; i += kArrayPageBytes) ASSERT_EQ(array[i], round);
    // In every other round the array is freed while the child may still live.
    if (round % 2 == 0) memory_.unmap(array, kBigBytes);
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (round % 2 == 1) memory_.unmap(array, kBigBytes);
  }
  is_done = true;
  collapser.join();
  EXPECT_EQ(memory_.reserved_bytes(), 0U);
  EXPECT_EQ(memory_.kept_bytes(), 0U);
  EXPECT_EQ(pages_.huge_bytes(), 0U);
  EXPECT_EQ(memory_.resident_bytes(), 0U);
}

}  // namespace
}  // namespace core::bloom
