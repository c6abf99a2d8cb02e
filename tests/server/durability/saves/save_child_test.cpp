// SPDX-License-Identifier: MIT
#include "server/durability/saves/save_child.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "core/bloom/arrays/bit_array.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

using core::bloom::ArrayMemory;
using core::bloom::BitArray;

constexpr uint64_t kArrayBits = uint64_t{64} << 23;

uint64_t resident_bytes() {
  return ArrayMemory::of_process().resident_bytes();
}

void wait_for_parent(const SaveChild::Figures& figures) {
  EXPECT_TRUE(support::wait_until([&] { return figures.may_begin.load(); }));
}

core::Result<> result_of(SaveChild& child) {
  std::optional<core::Result<>> done;
  if (!support::wait_until([&] { return (done = child.poll()).has_value(); })) {
    return core::Error{"ERR the child does not end"};
  }
  return *done;
}

// Expects that the child process which saves the array sees bits in exactly these pages of the
// array.
core::Result<> expect_pages(const BitArray& bits, const std::vector<uint64_t>& expected) {
  std::vector<uint64_t> pages;
  bits.visit_data(0, bits.bytes().size(), [&](uint64_t offset, auto data) {
    if (data[7] == std::byte{1}) pages.push_back(offset);
  });
  if (pages != expected) return core::Error{"ERR other pages"};
  return {};
}

TEST(SaveChildTest, FreedArrayIsSavedWholeAndLeavesTheHolesAlone) {
  const core::SystemClock clock;
  const uint64_t before_bytes = resident_bytes();
  std::optional<BitArray> bits = BitArray::allocate(kArrayBits);
  ASSERT_TRUE(bits);
  const std::vector<uint64_t> pages{0, uint64_t{40} << 20};
  for (const uint64_t page : pages) bits->bytes()[page + 7] = std::byte{1};
  const BitArray& shared = *bits;
  auto child = SaveChild::start(clock,
                                [&](SaveChild::Figures& figures) {
                                  wait_for_parent(figures);
                                  return expect_pages(shared, pages);
                                },
                                {});
  ASSERT_TRUE(child) << child.error().message;
  bits.reset();
  (*child)->let_begin();
  const auto result = result_of(**child);
  EXPECT_TRUE(result) << result.error().message;
  EXPECT_EQ(resident_bytes(), before_bytes);
}

TEST(SaveChildTest, KilledChildHoldsNoMemory) {
  const core::SystemClock clock;
  const uint64_t before_bytes = resident_bytes();
  std::optional<BitArray> bits = BitArray::allocate(kArrayBits);
  ASSERT_TRUE(bits);
  auto child = SaveChild::start(clock,
                                [](SaveChild::Figures& figures) -> core::Result<> {
                                  wait_for_parent(figures);
                                  return {};
                                },
                                {});
  ASSERT_TRUE(child) << child.error().message;
  bits.reset();
  child->reset();
  EXPECT_EQ(resident_bytes(), before_bytes);
}

}  // namespace
}  // namespace server
