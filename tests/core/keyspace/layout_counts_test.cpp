// SPDX-License-Identifier: MIT
#include "core/keyspace/layout_counts.h"

#include <gtest/gtest.h>

#include <utility>

#include "core/keyspace/entry.h"
#include "tests/support/filters.h"

namespace core::keyspace {
namespace {

TEST(LayoutCountsTest, ReportsTheFirstKey) {
  LayoutCounts counts;
  constexpr bloom::LayoutId kNative = bloom::kNativeLayout;
  EXPECT_EQ(counts.count(kNative), 0U);
  EXPECT_FALSE(counts.any());
  counts.add(kNative, "first");
  EXPECT_TRUE(counts.any());
  counts.add(kNative, "second");
  EXPECT_EQ(counts.first_key(kNative), "first");
  counts.remove(kNative);
  counts.remove(kNative);
  EXPECT_EQ(counts.count(kNative), 0U);
  counts.add(kNative, "third");
  EXPECT_EQ(counts.first_key(kNative), "third");
}

TEST(LayoutCountsTest, EntriesCountTheirFilters) {
  const LayoutCounts& counts = LayoutCounts::of_process();
  constexpr bloom::LayoutId kLayout = bloom::kFingerprintLayout;
  const uint64_t before = counts.count(kLayout);
  const auto count = [&] { return counts.count(kLayout) - before; };
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
