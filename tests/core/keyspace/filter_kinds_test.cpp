// SPDX-License-Identifier: MIT
#include "core/keyspace/filter_kinds.h"

#include <gtest/gtest.h>

#include <utility>

#include "core/keyspace/entry.h"
#include "tests/support/filters.h"

namespace core::keyspace {
namespace {

TEST(FilterKindsTest, ReportsTheFirstKey) {
  FilterKinds kinds;
  constexpr bloom::LayoutId kNative = bloom::kDefaultLayout;
  EXPECT_EQ(kinds.count(kNative), 0U);
  EXPECT_FALSE(kinds.any());
  kinds.add(kNative, "first");
  EXPECT_TRUE(kinds.any());
  kinds.add(kNative, "second");
  EXPECT_EQ(kinds.first_key(kNative), "first");
  kinds.remove(kNative);
  kinds.remove(kNative);
  EXPECT_EQ(kinds.count(kNative), 0U);
  kinds.add(kNative, "third");
  EXPECT_EQ(kinds.first_key(kNative), "third");
}

TEST(FilterKindsTest, EntriesCountTheirFilters) {
  const FilterKinds& kinds = FilterKinds::of_process();
  constexpr bloom::LayoutId kLayout = bloom::kDeletableLayout;
  const uint64_t before = kinds.count(kLayout);
  const auto count = [&] { return kinds.count(kLayout) - before; };
  {
    EntryPtr entry = Entry::create("k");
    entry->set_filter(filters::make(filters::parameters(kLayout, 100, 0.01), "item", 10));
    EXPECT_EQ(count(), 1U);
    const EntryPtr copy = entry->clone("copy");
    EXPECT_EQ(count(), 2U);
    entry = Entry::with_key(std::move(entry), "renamed");
    EXPECT_EQ(count(), 2U);
    entry->set_integer(1);
    EXPECT_EQ(count(), 1U);
  }
  EXPECT_EQ(count(), 0U);
}

}  // namespace
}  // namespace core::keyspace
