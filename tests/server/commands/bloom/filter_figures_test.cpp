// SPDX-License-Identifier: MIT
#include "server/commands/bloom/filter_figures.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"

namespace server {
namespace {

using core::bloom::FilterParameters;
using core::bloom::ScalableFilter;

const core::UnlimitedMemory kUnlimited;

std::unique_ptr<ScalableFilter> filter_of(core::bloom::LayoutId layout, int items) {
  FilterParameters parameters;
  parameters.error_rate = 0.01;
  parameters.capacity = 1000;
  parameters.layout = layout;
  auto filter = ScalableFilter::create(parameters, kUnlimited);
  EXPECT_TRUE(filter);
  for (int i = 0; i < items; ++i) (*filter)->add(std::to_string(i), kUnlimited);
  return *std::move(filter);
}

TEST(FilterFiguresTest, TheFillIsThatOfAllLayers) {
  for (const core::bloom::LayoutRow& row : core::bloom::kLayoutRows) {
    for (const int items : {0, 100, 1000, 5000}) {
      const auto filter = filter_of(row.id, items);
      const FilterFigures figures = figures_of(*filter, uint64_t{1} << 30);
      const double fill = fill_ratio_of(*filter, uint64_t{1} << 30);
      EXPECT_DOUBLE_EQ(figures.fill_ratio(), fill) << row.name << items;
      EXPECT_EQ(fill == 0, items == 0) << row.name;
      EXPECT_EQ(figures.item_count, filter->item_count());
      EXPECT_EQ(figures.layers.size(), filter->layer_count());
    }
  }
}

// BF.STATS holds the key's lock while it calls figures_of().
TEST(FilterFiguresTest, ResiduesAreComputedAfterwards) {
  core::bloom::FilterParameters parameters;
  parameters.layout = core::bloom::kRegionLayout;
  parameters.region_bits = 4;
  parameters.error_rate = 0.1;
  parameters.capacity = 100;
  parameters.expansion = 1;
  const auto filter = std::move(*core::bloom::ScalableFilter::create(parameters, kUnlimited));
  for (int i = 0; i < 5000; ++i) filter->add(std::to_string(i), kUnlimited);
  ASSERT_GE(filter->layer_count(), 40U);
  FilterFigures figures = figures_of(*filter, uint64_t{1} << 30);
  EXPECT_EQ(figures.residue(), 0);
  figures.compute_residues();
  EXPECT_GT(figures.residue(), 0);
  EXPECT_LT(figures.residue(), 1);
}

TEST(FilterFiguresTest, ASampleIsCloseToTheWhole) {
  const auto filter = filter_of(core::bloom::kNativeLayout, 100'000);
  ASSERT_GT(filter->size_bytes(), 100'000U);
  EXPECT_NEAR(fill_ratio_of(*filter, 16 << 10), fill_ratio_of(*filter, uint64_t{1} << 30), 0.02);
}

}  // namespace
}  // namespace server
