// SPDX-License-Identifier: MIT
#include "server/admin/figures/filter_census.h"

#include <fmt/format.h>

#include "core/bloom/scalable_filter.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

class FilterCensusTest : public CommandTest {
 protected:
  FilterCensus census_{keyspace_, clock_};
};

TEST_F(FilterCensusTest, SumsAllFiltersOfAllDatabases) {
  run({"BF.RESERVE", "small", "0.01", "100"});
  run({"BF.ADD", "small", "x"});
  run({"SET", "text", "x"});
  run({"SELECT", "3"});
  run({"BF.RESERVE", "large", "0.01", "100000"});
  EXPECT_FALSE(census_.figures());
  census_.refresh(1'000'000);
  ASSERT_TRUE(census_.figures());
  const CensusFigures& figures = *census_.figures();
  EXPECT_EQ(figures.object_count, 2U);
  EXPECT_EQ(figures.layer_count, 2U);
  EXPECT_EQ(figures.item_count, 1U);
  EXPECT_GE(figures.capacity, 100'100U);
  ASSERT_EQ(figures.largest.size(), 2U);
  EXPECT_EQ(figures.largest[0].key, "large");
  EXPECT_EQ(figures.largest[0].database, 3U);
  EXPECT_EQ(figures.largest[1].key, "small");
  EXPECT_EQ(figures.largest[1].item_count, 1U);
  EXPECT_GT(figures.largest[1].fill_ratio, 0);
  EXPECT_EQ(figures.largest[1].error_rate, 0.01);
  EXPECT_EQ(figures.largest[1].items_left, 99U);
  EXPECT_EQ(figures.memory_bytes, figures.largest[0].size_bytes + figures.largest[1].size_bytes);
}

TEST_F(FilterCensusTest, RemembersTheLargestOnly) {
  for (int i = 0; i < 120; ++i) {
    run({"BF.RESERVE", fmt::format("f{}", i), "0.01", std::to_string(1000 * (i + 1))});
  }
  census_.refresh(1'000'000);
  ASSERT_TRUE(census_.figures());
  const auto& largest = census_.figures()->largest;
  ASSERT_EQ(largest.size(), FilterCensus::kLargestMax);
  EXPECT_EQ(largest.front().key, "f119");
  EXPECT_EQ(largest.back().key, "f70");
  EXPECT_EQ(census_.figures()->object_count, 120U);
}

TEST_F(FilterCensusTest, AWalkIsDoneInSteps) {
  for (int i = 0; i < 3000; ++i) run({"BF.RESERVE", fmt::format("f{}", i), "0.01", "10"});
  census_.refresh(0);
  EXPECT_FALSE(census_.figures());
  int steps = 0;
  for (; !census_.figures() && steps < 3000; ++steps) census_.step(0);
  EXPECT_GT(steps, 2);
  ASSERT_TRUE(census_.figures());
  EXPECT_EQ(census_.figures()->object_count, 3000U);
}

TEST_F(FilterCensusTest, TheNextWalkSeesWhatHasChanged) {
  run({"BF.ADD", "f", "x"});
  census_.refresh(1'000'000);
  run({"DEL", "f"});
  run({"BF.ADD", "g", "x"});
  census_.step(1'000'000);  // This step does nothing, because no walk over the keyspace has begun.
  EXPECT_EQ(census_.figures()->largest[0].key, "f");
  census_.refresh(1'000'000);
  ASSERT_EQ(census_.figures()->largest.size(), 1U);
  EXPECT_EQ(census_.figures()->largest[0].key, "g");
}

}  // namespace
}  // namespace server::admin
