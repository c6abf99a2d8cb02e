// SPDX-License-Identifier: MIT
#include "core/bloom/filter_union.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/bloom/valkeybloom_layout.h"
#include "core/bloom/window.h"
#include "tests/support/error_matcher.h"
#include "tests/support/filters.h"

namespace core::bloom {
namespace {

using filters::make;
using FilterPtr = std::unique_ptr<ScalableFilter>;

constexpr LayoutId kMergeable[] = {NativeLayout::kId, RedisBloomLayout::kId,
                                   ValkeyBloomLayout::kId};

FilterParameters settings(LayoutId layout, uint64_t capacity = 1000, double error_rate = 0.01,
                          uint32_t expansion = 2) {
  return filters::parameters(layout, capacity, error_rate, expansion);
}

Result<FilterPtr> united(const std::vector<const ScalableFilter*>& inputs,
                         Overfill overfill = Overfill::kRefused) {
  return unite(inputs, overfill);
}

std::string refusal(const ScalableFilter& first, const ScalableFilter& other) {
  const auto result = united({&first, &other});
  return result ? "" : result.error().message;
}

void expect_holds(const ScalableFilter& filter, std::string_view prefix, int count) {
  int missing = 0;
  for (int i = 0; i < count; ++i) missing += !filter.may_contain(fmt::format("{}:{}", prefix, i));
  EXPECT_EQ(missing, 0) << prefix;
}

bool is_near(uint64_t count, double expected, double share) {
  return std::fabs(static_cast<double>(count) - expected) <= share * expected;
}

TEST(FilterUnion, ContainsAllItemsAndEstimatesTheCount) {
  for (const LayoutId layout : kMergeable) {
    SCOPED_TRACE(layout_name(layout));
    const auto a = make(settings(layout), "a", 300);
    const auto b = make(settings(layout), "b", 400);
    const auto c = make(settings(layout), "a", 200);  // the items of `c` are also in `a`
    const auto all = united({a.get(), b.get(), c.get()});
    ASSERT_TRUE(all) << all.error().message;
    expect_holds(**all, "a", 300);
    expect_holds(**all, "b", 400);
    EXPECT_TRUE(is_near((*all)->item_count(), 700, 0.03)) << (*all)->item_count();
    // Layouts whose stored form cannot say so do not have the mark.
    EXPECT_EQ((*all)->parameters().item_count_is_estimated, layout_row(layout).marks_estimates);
    EXPECT_EQ((*all)->size_bytes(), *union_bytes(std::vector<const ScalableFilter*>{a.get()}));
    // The union has the error rate of a single filter with the same number of items.
    int found = 0;
    for (int i = 0; i < 100000; ++i) found += (*all)->may_contain(fmt::format("absent:{}", i));
    EXPECT_LE(found, 1000 + 4 * 32);
  }
}

TEST(FilterUnion, BitsEqualOneFilterWithAllItems) {
  for (const LayoutId layout : kMergeable) {
    const auto a = make(settings(layout), "a", 300);
    const auto b = make(settings(layout), "b", 300);
    auto twin = make(settings(layout), "a", 300);
    for (int i = 0; i < 300; ++i) twin->add(fmt::format("b:{}", i), core::UnlimitedMemory());
    const auto all = united({a.get(), b.get()});
    ASSERT_TRUE(all);
    const auto bits = (*all)->layer_bits(0).bytes();
    const auto expected = twin->layer_bits(0).bytes();
    EXPECT_TRUE(std::ranges::equal(bits, expected)) << layout_name(layout);
  }
}

TEST(FilterUnion, LayersAreCopiedIfOneFilterHasFewer) {
  for (const LayoutId layout : kMergeable) {
    SCOPED_TRACE(layout_name(layout));
    const auto small = make(settings(layout, 100), "s", 20);
    const auto grown = make(settings(layout, 100), "g", 900);
    ASSERT_GE(grown->layer_count(), 3U);
    for (const bool grown_first : {false, true}) {
      const ScalableFilter* const first = grown_first ? grown.get() : small.get();
      const ScalableFilter* const second = grown_first ? small.get() : grown.get();
      const auto all = united({first, second}, Overfill::kAllowed);
      ASSERT_TRUE(all) << all.error().message;
      EXPECT_EQ((*all)->layer_count(), grown->layer_count());
      expect_holds(**all, "s", 20);
      expect_holds(**all, "g", 900);
      for (size_t i = 1; i < grown->layer_count(); ++i) {
        EXPECT_EQ((*all)->layer_info(i).item_count, grown->layer_info(i).item_count);
        EXPECT_EQ((*all)->layer_info(i).error_rate, grown->layer_info(i).error_rate);
      }
      // When more items are added, the union grows.
      for (int i = 0; i < 2000; ++i) {
        (*all)->add(fmt::format("later:{}", i), core::UnlimitedMemory());
      }
      expect_holds(**all, "later", 2000);
    }
  }
}

TEST(FilterUnion, SubsetDoesNotChangeTheCount) {
  const auto whole = make(settings(kNativeLayout), "a", 1000);
  const auto part = make(settings(kNativeLayout), "a", 500);
  for (const auto& inputs : {std::vector<const ScalableFilter*>{whole.get(), part.get()},
                             {part.get(), whole.get()},
                             {whole.get()}}) {
    const auto all = united(inputs);
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ((*all)->item_count(), whole->item_count());
    EXPECT_FALSE((*all)->parameters().item_count_is_estimated);
  }
}

TEST(FilterUnion, CountIsBoundedByThePartsCounts) {
  for (int seed = 0; seed < 30; ++seed) {
    const auto a = make(settings(kNativeLayout, 100), fmt::format("a{}", seed), 50);
    const auto b = make(settings(kNativeLayout, 100), fmt::format("b{}", seed), 50);
    const auto all = united({a.get(), b.get()});
    // The union's estimated item count is limited to the sum of the inputs' counts, so the union
    // fits into the capacity of 100.
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_LE((*all)->item_count(), a->item_count() + b->item_count());
    EXPECT_GE((*all)->item_count(), 50U);
  }
}

TEST(FilterUnion, HighCountsAreLimited) {
  const auto small = make(settings(kNativeLayout, 100), "c", 3);
  const auto a =
      filters::with_item_counts(*make(settings(kNativeLayout, 100), "a", 5), kMaxItemCount);
  const auto b =
      filters::with_item_counts(*make(settings(kNativeLayout, 100), "b", 5), kMaxItemCount);
  for (const auto& inputs :
       {std::vector<const ScalableFilter*>{a.get(), b.get()}, {a.get(), b.get(), small.get()}}) {
    const auto all = united(inputs, Overfill::kAllowed);
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ((*all)->layer_info(0).item_count, kMaxItemCount);
    EXPECT_EQ((*all)->item_count(), kMaxItemCount);
  }
}

TEST(FilterUnion, RejectsUnionsAboveTheErrorRate) {
  for (const LayoutId layout : kMergeable) {
    SCOPED_TRACE(layout_name(layout));
    const auto a = make(settings(layout), "a", 900);
    const auto b = make(settings(layout), "b", 900);
    EXPECT_THAT(refusal(*a, *b), is_error("ERR", "error rate: layer 0 of capacity 1000"));
    const auto forced = united({a.get(), b.get()}, Overfill::kAllowed);
    ASSERT_TRUE(forced);
    expect_holds(**forced, "a", 900);
    expect_holds(**forced, "b", 900);
    if (layout_row(layout).marks_estimates) {
      EXPECT_TRUE(is_near((*forced)->item_count(), 1800, 0.05));
    } else {
      // The file formats of other servers cannot store an item count above the capacity.
      EXPECT_EQ((*forced)->item_count(), 1000U);
    }
    EXPECT_EQ((*forced)->add("next", core::UnlimitedMemory()), AddOutcome::kAdded);
    EXPECT_EQ((*forced)->layer_count(), 2U);
  }
}

TEST(FilterUnion, RejectsOtherSettingsWithTheReason) {
  const auto base = make(settings(kNativeLayout), "a", 10);
  const auto other = [](const FilterParameters& asked) { return make(asked, "b", 10); };
  EXPECT_THAT(refusal(*base, *other(settings(RedisBloomLayout::kId))),
              is_error("ERR", "layouts differ (native and redisbloom)"));
  EXPECT_THAT(refusal(*base, *other(settings(kNativeLayout, 1000, 0.02))),
              is_error("ERR", "error rates differ (0.01 and 0.02)"));
  EXPECT_THAT(refusal(*base, *other(settings(kNativeLayout, 2000))),
              is_error("ERR", "capacities of layer 0 differ (1000 and 2000)"));
  EXPECT_THAT(refusal(*base, *other(settings(kNativeLayout, 1000, 0.01, 0))),
              is_error("ERR", "shapes of layer 0"));
  FilterParameters seeded = settings(ValkeyBloomLayout::kId);
  const auto fixed = other(seeded);
  seeded.seed[0] ^= 1;
  EXPECT_THAT(refusal(*fixed, *other(seeded)), is_error("ERR", "seeds"));
  FilterParameters old_form = settings(RedisBloomLayout::kId);
  const auto usual = other(old_form);
  old_form.hashes_32_bits = true;
  EXPECT_THAT(refusal(*usual, *other(old_form)), is_error("ERR", "hashes of 32 bits"));
}

TEST(FilterUnion, RejectsFiltersWithAWindow) {
  const auto base = make(settings(kNativeLayout), "a", 10);
  FilterParameters forgetful = settings(kNativeLayout);
  forgetful.window = {.length = 1000, .unit = WindowUnit::kItems, .generations = 4};
  const auto windowed = make(forgetful, "b", 10);
  const auto reason = is_error("ERR", "window");
  EXPECT_THAT(refusal(*base, *windowed), reason);
  EXPECT_THAT(refusal(*windowed, *base), reason);
  EXPECT_THAT(refusal(*windowed, *windowed->clone()), reason);
}

TEST(FilterUnion, GainsLayersOnlyWithEqualTightening) {
  FilterParameters halved = settings(ValkeyBloomLayout::kId, 100);
  halved.tightening_ratio = 0.5;
  FilterParameters reduced = halved;
  reduced.tightening_ratio = 0.25;
  const auto small = make(halved, "s", 20);
  const auto other = make(reduced, "g", 900);
  EXPECT_THAT(refusal(*small, *other), is_error("ERR", "tightening ratios differ (0.5 and 0.25)"));
}

TEST(FilterUnion, GainsLayersOnlyWithEqualExpansion) {
  const auto small = make(settings(kNativeLayout, 100), "s", 20);
  const auto other = make(settings(kNativeLayout, 100, 0.01, 3), "g", 900);
  EXPECT_THAT(refusal(*small, *other), is_error("ERR", "expansions differ (2 and 3)"));
  // With the filters in the opposite order, the union needs no additional layer.
  EXPECT_TRUE(united({other.get(), small.get()}, Overfill::kAllowed));
  // The second and third filter differ in a layer that the first filter does not have.
  const auto third = make(settings(kNativeLayout, 100), "t", 900);
  EXPECT_FALSE(united({small.get(), third.get(), other.get()}, Overfill::kAllowed));
}

TEST(FilterUnion, LeavesUntouchedPagesUntouched) {
  const auto a = make(settings(kNativeLayout, 50'000'000), "a", 3);
  const auto b = make(settings(kNativeLayout, 50'000'000), "b", 3);
  const auto all = united({a.get(), b.get()});
  ASSERT_TRUE(all);
  expect_holds(**all, "a", 3);
  expect_holds(**all, "b", 3);
  EXPECT_EQ((*all)->item_count(), 6U);
  for (const ScalableFilter* filter : {a.get(), b.get(), all->get()}) {
    uint64_t touched_bytes = 0;
    const BitArray& bits = filter->layer_bits(0);
    if (!bits.is_mapped()) GTEST_SKIP() << "this system has no sparse arrays";
    bits.visit_data(0, bits.bytes().size(),
                    [&](uint64_t, auto piece) { touched_bytes += piece.size(); });
    EXPECT_LE(touched_bytes, 64U * 4096);
  }
}

TEST(EmptyLikeTest, KeepsTheParametersAndOneLayer) {
  for (const LayoutId layout : kMergeable) {
    SCOPED_TRACE(layout_name(layout));
    const auto fresh = make(settings(layout, 100), "a", 0);
    for (const int count : {0, 50, 900}) {
      const auto filter = make(settings(layout, 100), "a", count);
      const auto empty = create_empty_like(*filter);
      ASSERT_NE(empty, nullptr);
      EXPECT_EQ(empty->parameters(), fresh->parameters());
      EXPECT_EQ(empty->layer_count(), 1U);
      EXPECT_EQ(empty->item_count(), 0U);
      EXPECT_EQ(empty->size_bytes(), fresh->size_bytes());
      EXPECT_EQ(empty->layer_info(0).error_rate, fresh->layer_info(0).error_rate);
      EXPECT_EQ(empty->layer_bits(0).count_ones(), 0U);
      EXPECT_EQ(filter->item_count(), make(settings(layout, 100), "a", count)->item_count());
    }
  }
}

TEST(EmptyLikeTest, KeepsTheWindowPosition) {
  for (const WindowUnit unit : {WindowUnit::kItems, WindowUnit::kMilliseconds}) {
    FilterParameters forgetful = settings(kNativeLayout, 100);
    const uint64_t length = unit == WindowUnit::kItems ? 100 : 4000;
    forgetful.window = {.length = length, .unit = unit, .generations = 4};
    const auto filter = make(forgetful, "a", 260);
    const auto empty = create_empty_like(*filter);
    ASSERT_NE(empty, nullptr);
    EXPECT_EQ(empty->parameters(), filter->parameters());
    EXPECT_EQ(empty->item_count(), 0U);
    EXPECT_EQ(empty->window()->newest(), filter->window()->newest());
    EXPECT_EQ(empty->window()->generations().size(), 1U);
    int added = 0;
    for (int i = 0; i < 260; ++i) {
      added += has_effect(empty->add(fmt::format("b:{}", i), core::UnlimitedMemory()));
    }
    EXPECT_GE(added, 240);
    EXPECT_TRUE(empty->may_contain("b:259"));
  }
}

TEST(EmptyLikeTest, DropsTheMarkOfAnEstimatedCount) {
  const auto a = make(settings(kNativeLayout), "a", 300);
  const auto b = make(settings(kNativeLayout), "b", 300);
  const auto all = united({a.get(), b.get()});
  ASSERT_TRUE(all);
  EXPECT_FALSE(create_empty_like(**all)->parameters().item_count_is_estimated);
}

}  // namespace
}  // namespace core::bloom
