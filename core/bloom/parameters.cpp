// SPDX-License-Identifier: MIT
#include "core/bloom/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/bloom/layouts.h"

namespace core::bloom {
namespace {

std::optional<LayerPlan> plan_layer(const FilterParameters& parameters, uint64_t capacity,
                                    double error_rate) {
  if (capacity == 0 || !is_rate(error_rate)) return std::nullopt;
  return with_layout(parameters.layout, [&]<class Layout>() {
    return Layout::plan(parameters, capacity, error_rate);
  });
}

}  // namespace

uint64_t lookup_lines(const Geometry& geometry) {
  const bool has_lines = geometry.lines_per_lookup != 0;
  const uint64_t lines = has_lines ? geometry.lines_per_lookup : geometry.hash_count;
  // A small array may have fewer lines than a lookup usually touches.
  return std::min(lines, (geometry.bit_count + kLineBits - 1) / kLineBits);
}

double estimated_items(const Geometry& geometry, double fill_ratio) {
  const double bits = static_cast<double>(geometry.bit_count);
  // For a full array the estimate would be infinite. So a full array is treated as an array with
  // one clear bit, which gives the largest finite estimate.
  const double share = std::min(fill_ratio, (bits - 1) / bits);
  return -bits / geometry.hash_count * std::log1p(-share);
}

double tightening_ratio_of(const FilterParameters& parameters) {
  const double asked = parameters.tightening_ratio;
  return asked > 0 ? asked : layout_row(parameters.layout).own_tightening;
}

FilterParameters generation_parameters(const FilterParameters& parameters) {
  FilterParameters generation = parameters;
  if (!parameters.window.is_set()) return generation;
  const uint64_t count = parameters.window.generations;
  generation.window = WindowSettings{};
  generation.error_rate /= static_cast<double>(live_generations(parameters));
  generation.capacity = parameters.capacity / count + (parameters.capacity % count != 0);
  return generation;
}

double layer_error_rate(const FilterParameters& parameters, uint32_t index) {
  if (parameters.window.is_set()) {
    return layer_error_rate(generation_parameters(parameters), index);
  }
  if (!parameters.is_scaling()) return parameters.error_rate;
  return with_layout(parameters.layout,
                     [&]<class Layout>() { return Layout::layer_error_rate(parameters, index); });
}

std::optional<LayerPlan> plan_first_layer(const FilterParameters& parameters) {
  if (parameters.window.is_set()) return plan_first_layer(generation_parameters(parameters));
  return plan_layer(parameters, parameters.capacity, layer_error_rate(parameters, 0));
}

std::optional<LayerPlan> plan_next_layer(const FilterParameters& parameters, uint32_t index,
                                         const LayerPlan& last) {
  if (parameters.window.is_set()) {
    return plan_next_layer(generation_parameters(parameters), index, last);
  }
  if (!parameters.is_scaling() || index >= kMaxLayers) return std::nullopt;
  if (last.capacity > kMaxItemCount / parameters.expansion) return std::nullopt;
  const double error_rate = with_layout(parameters.layout, [&]<class Layout>() {
    if constexpr (requires { Layout::next_error_rate(last.error_rate); }) {
      return Layout::next_error_rate(last.error_rate);
    } else {
      return Layout::layer_error_rate(parameters, index);
    }
  });
  return plan_layer(parameters, last.capacity * parameters.expansion, error_rate);
}

uint64_t accounted_bytes(LayoutId layout, uint64_t layer_count, uint64_t bits_bytes) {
  return with_layout(layout, [&]<class Layout>() {
    if constexpr (Layout::kRow.is_foreign) {
      return Layout::accounted_bytes(layer_count, bits_bytes);
    }
    const uint64_t filter_bytes = kFilterBytes + bits_bytes;
    return layer_count <= 1 ? filter_bytes : filter_bytes + kChainBytes + kLayerBytes * layer_count;
  });
}

FilterParameters without_unused(FilterParameters parameters) {
  const LayoutRow& layout = layout_row(parameters.layout);
  if (!layout.takes_seed) parameters.seed = kFixedSeed;
  if (!parameters.window.is_set()) parameters.window = WindowSettings{};
  if (!layout.takes_region_bits) {
    parameters.region_bits = 0;
  } else if (parameters.region_bits == 0) {
    parameters.region_bits = kDefaultRegionBits;
  }
  if (!layout.has_older_forms) {
    parameters.hashes_32_bits = false;
    parameters.rounds_to_power_of_two = false;
  }
  if (!layout.has_older_forms || parameters.is_scaling()) {
    parameters.idle_growth = FilterParameters::kUsualIdleGrowth;
  }
  if (!layout.marks_estimates) parameters.item_count_is_estimated = false;
  return parameters;
}

uint64_t planned_bytes(const FilterParameters& parameters) {
  const auto plan = plan_first_layer(parameters);
  return plan ? plan->geometry.size_bytes() : std::numeric_limits<uint64_t>::max();
}

ScalingForecast forecast_scaling(const FilterParameters& parameters, uint64_t capacity_wanted,
                                 const ScalingLimits& limits) {
  constexpr uint64_t kMostCapacity = std::numeric_limits<uint64_t>::max();
  ScalingForecast forecast;
  uint64_t bits_bytes = 0;
  auto plan = plan_first_layer(parameters);
  for (uint32_t layer_count = 1;; ++layer_count) {
    if (!plan) {
      // A layer cannot be planned if its error rate underflows or its size is out of range.
      const bool rate_is_gone = !is_rate(layer_error_rate(parameters, layer_count - 1));
      forecast.limit = rate_is_gone ? ScalingLimit::kErrorRate : ScalingLimit::kMemory;
      return forecast;
    }
    bits_bytes += (plan->geometry.bit_count + 7) / 8;
    if (accounted_bytes(parameters.layout, layer_count, bits_bytes) > limits.bytes) {
      forecast.limit = ScalingLimit::kMemory;
      return forecast;
    }
    forecast.capacity += std::min(plan->capacity, kMostCapacity - forecast.capacity);
    if (forecast.capacity >= capacity_wanted || !parameters.is_scaling()) return forecast;
    if (layer_count >= limits.layers) {
      forecast.limit = ScalingLimit::kLayers;
      return forecast;
    }
    plan = plan_next_layer(parameters, layer_count, *plan);
  }
}

}  // namespace core::bloom
