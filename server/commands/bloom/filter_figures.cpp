// SPDX-License-Identifier: MIT
#include "server/commands/bloom/filter_figures.h"

#include <algorithm>
#include <cmath>

#include "core/bloom/window.h"

namespace server {
namespace {

using core::bloom::ArrayView;
using core::bloom::LayerInfo;
using core::bloom::ScalableFilter;

// Returns how many bytes of a layer may be read. Layers share read_bytes in proportion to their
// sizes.
uint64_t share_of(const ScalableFilter& filter, const LayerInfo& layer, uint64_t read_bytes) {
  const double share = static_cast<double>(read_bytes) /
                       static_cast<double>(std::max(filter.size_bytes(), read_bytes));
  const auto bytes = static_cast<double>(layer.geometry.size_bytes());
  return static_cast<uint64_t>(std::ceil(share * bytes));
}

}  // namespace

std::optional<uint64_t> items_left_in(const ScalableFilter& filter) {
  if (filter.window() != nullptr) return std::nullopt;
  const LayerInfo newest = filter.layer_info(filter.layer_count() - 1);
  return newest.capacity - std::min(newest.capacity, newest.item_count);
}

FilterFigures summary_of(const ScalableFilter& filter) {
  FilterFigures figures;
  figures.parameters = filter.parameters();
  figures.size_bytes = filter.size_bytes();
  figures.item_count = filter.item_count();
  figures.capacity = filter.capacity();
  figures.predicted_error_rate = filter.predicted_error_rate();
  figures.items_left = items_left_in(filter);
  figures.next_layer_bytes = filter.next_layer_bytes();
  return figures;
}

FilterFigures figures_of(const ScalableFilter& filter, uint64_t read_bytes) {
  FilterFigures figures = summary_of(filter);
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerInfo info = filter.layer_info(i);
    const double error = filter.predicted_error_rate(i);
    const ArrayView array{filter.layer_bits(i).words(), info.geometry};
    if (const auto own = core::bloom::array_figures(filter.layout(), array, info.item_count)) {
      figures.layers.push_back({info, error, own->fill_ratio, own->items, own->flag_share});
      continue;
    }
    const double fill = filter.sampled_fill_ratio(i, share_of(filter, info, read_bytes));
    figures.layers.push_back(
        {info, error, fill, core::bloom::estimated_items(info.geometry, fill)});
  }
  const core::bloom::Window* const window = filter.window();
  for (size_t i = 0; window != nullptr && i < window->generations().size(); ++i) {
    const auto& [ordinal, layer_count] = window->generations()[i];
    figures.generations.push_back(
        {window->start_of(ordinal), layer_count, filter.generation_item_count(i)});
  }
  return figures;
}

double fill_ratio_of(const ScalableFilter& filter, uint64_t read_bytes) {
  double ones = 0;
  double bits = 0;
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerInfo info = filter.layer_info(i);
    const ArrayView array{filter.layer_bits(i).words(), info.geometry};
    const auto own = core::bloom::array_fill_ratio(filter.layout(), array, info.item_count);
    const double fill =
        own ? *own : filter.sampled_fill_ratio(i, share_of(filter, info, read_bytes));
    const auto layer_bits = static_cast<double>(info.geometry.bit_count);
    ones += fill * layer_bits;
    bits += layer_bits;
  }
  return ones / bits;
}

}  // namespace server
