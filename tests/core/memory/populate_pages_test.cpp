// SPDX-License-Identifier: MIT
#include "core/memory/populate_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "tests/support/madvise_probe.h"

namespace core {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kPages = 64;

class PopulatePagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const memory = ::mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    ::madvise(memory, kPages * kPageBytes, MADV_NOHUGEPAGE);
  }
  void TearDown() override { ::munmap(memory_, kPages * kPageBytes); }

  // Returns the indexes of the resident pages.
  std::vector<size_t> resident_pages() const {
    std::vector<unsigned char> in_memory(kPages);
    ::mincore(memory_, kPages * kPageBytes, in_memory.data());
    std::vector<size_t> pages;
    for (size_t i = 0; i < kPages; ++i) {
      if ((in_memory[i] & 1) != 0) pages.push_back(i);
    }
    return pages;
  }

  std::byte* memory_ = nullptr;
};

TEST_F(PopulatePagesTest, WholePagesOfTheRangeAreAllocated) {
  if (support::madvise_is_ignored()) GTEST_SKIP() << "madvise() is emulated";
#ifdef MADV_POPULATE_WRITE
  if (::madvise(memory_ + (kPages - 1) * kPageBytes, kPageBytes, MADV_POPULATE_WRITE) != 0) {
    GTEST_SKIP() << "this kernel has no MADV_POPULATE_WRITE: errno " << errno;
  }
#endif
  populate_pages({memory_ + 100, 40 * kPageBytes});
  const auto pages = resident_pages();
  ASSERT_EQ(pages.size(), 40U);
  EXPECT_EQ(pages.front(), 1U);
  EXPECT_EQ(pages[38], 39U) << "the range covers only part of the next page";
  EXPECT_TRUE(std::all_of(memory_, memory_ + kPages * kPageBytes,
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_F(PopulatePagesTest, SmallRangesAreIgnored) {
  populate_pages({memory_, kPopulatedBytesMin - 1});
  populate_pages({});
  EXPECT_TRUE(resident_pages().empty());
}

TEST_F(PopulatePagesTest, BytesAreUnchanged) {
  std::fill_n(memory_, kPages * kPageBytes / 2, std::byte{7});
  populate_pages({memory_, kPages * kPageBytes});
  EXPECT_EQ(std::count(memory_, memory_ + kPages * kPageBytes, std::byte{7}),
            static_cast<ptrdiff_t>(kPages * kPageBytes / 2));
}

}  // namespace
}  // namespace core
