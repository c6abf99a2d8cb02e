// SPDX-License-Identifier: MIT
#include "server/cluster/slot_ranges.h"

#include <gtest/gtest.h>

#include <string>

namespace server::cluster {
namespace {

TEST(SlotRangesTest, ATextMakesTheSameRanges) {
  for (const std::string text : {"", "0", "0-16383", "0-5460 7000", "1 3 5-9 16383"}) {
    const auto ranges = parse_slot_ranges(text);
    ASSERT_TRUE(ranges) << text;
    EXPECT_EQ(slot_ranges_text(*ranges), text);
  }
  EXPECT_EQ(slot_ranges_text(*parse_slot_ranges("0-4 5-9 10")), "0-10");
  EXPECT_EQ(slot_count(*parse_slot_ranges("0-4 6 8-9")), 8U);
}

TEST(SlotRangesTest, WrongRangesAreRefused) {
  for (const std::string text : {"-", "-1", "1-", "16384", "0-16384", "5-4", "a", " ", "1 ", " 1",
                                 "1  2", "3 2", "0-5 5", "01", "1-2-3", "1,2"}) {
    EXPECT_FALSE(parse_slot_ranges(text)) << text;
  }
}

TEST(SlotRangesTest, EqualPartsCoverAllSlots) {
  const auto three = equal_slot_ranges(3);
  EXPECT_EQ(three, (std::vector<SlotRange>{{0, 5460}, {5461, 10922}, {10923, 16383}}));
  for (const unsigned parts : {1U, 2U, 7U, 100U, 16384U}) {
    const auto ranges = equal_slot_ranges(parts);
    ASSERT_EQ(ranges.size(), parts);
    unsigned next = 0;
    for (const SlotRange& range : ranges) {
      EXPECT_EQ(range.first, next);
      EXPECT_LE(range.count(), 16384 / parts + 1);
      EXPECT_GE(range.count(), 16384 / parts);
      next = range.last + 1;
    }
    EXPECT_EQ(next, 16384U);
  }
}

}  // namespace
}  // namespace server::cluster
