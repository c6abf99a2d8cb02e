// SPDX-License-Identifier: MIT
#include "server/commands/bloom/bloom_statistics.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/filters.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

class BloomStatisticsTest : public KeyTest {
 protected:
  BloomTotals totals() { return bloom_totals(keyspace_); }
};

TEST_F(BloomStatisticsTest, WithoutFiltersAllIsZero) {
  EXPECT_EQ(totals(), BloomTotals{});
  put("text", "value");
  EXPECT_EQ(totals(), BloomTotals{});
}

TEST_F(BloomStatisticsTest, ItemsAndCapacitiesAreSummed) {
  run({"BF.RESERVE", "f", "0.01", "100"});
  run({"BF.RESERVE", "g", "0.01", "200"});
  run({"BF.MADD", "f", "a", "b", "c"});
  run({"BF.ADD", "g", "a"});
  const BloomTotals sum = totals();
  EXPECT_EQ(sum.object_count, 2U);
  EXPECT_EQ(sum.layer_count, 2U);
  EXPECT_EQ(sum.item_count, 4U);
  EXPECT_EQ(sum.capacity, 300U);
}

TEST_F(BloomStatisticsTest, EveryLayerOfAFilterCounts) {
  run({"BF.RESERVE", "f", "0.01", "10"});
  for (int i = 0; i < 100; ++i) run({"BF.ADD", "f", std::to_string(i)});
  EXPECT_EQ(totals().object_count, 1U);
  EXPECT_EQ(totals().layer_count, entry_of("f")->filter().layer_count());
  EXPECT_GT(totals().layer_count, 2U);
}

TEST_F(BloomStatisticsTest, HighCountsAreLimited) {
  for (const std::string key : {"f", "g", "h"}) {
    run({"BF.RESERVE", key, "0.01", "100"});
    core::keyspace::Entry& entry = *entry_of(key);
    entry.set_filter(filters::with_item_counts(entry.filter(), core::bloom::kMaxItemCount));
  }
  EXPECT_EQ(totals().item_count, core::bloom::kMaxItemCount);
}

TEST_F(BloomStatisticsTest, MemoryIsWhatBfInfoTells) {
  run({"BF.RESERVE", "f", "0.01", "100"});
  const std::string size = run({"BF.INFO", "f", "SIZE"});
  EXPECT_EQ(integer(static_cast<int64_t>(totals().memory_bytes)), size.substr(size.find(':')));
}

TEST_F(BloomStatisticsTest, AllDatabasesAreVisited) {
  run({"BF.ADD", "f", "a"});
  run({"SELECT", "7"});
  run({"BF.ADD", "f", "a"});
  EXPECT_EQ(totals().object_count, 2U);
  run({"FLUSHDB"});
  EXPECT_EQ(totals().object_count, 1U);
}

}  // namespace
}  // namespace server
