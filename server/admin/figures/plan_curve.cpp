// SPDX-License-Identifier: MIT
#include "server/admin/figures/plan_curve.h"

#include <algorithm>
#include <cmath>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"

namespace server::admin {
namespace {

using core::bloom::FilterParameters;
using core::bloom::LayerPlan;

// The state of a filter, or of one generation of a windowed filter, whose layers were filled one
// after another.
struct Filled {
  // The logarithm of the probability that a lookup of an absent item answers "no".
  double log_of_no = 0;
  uint64_t layer_count = 0;
  uint64_t bits_bytes = 0;
};

Filled fill(const FilterParameters& parameters, LayerPlan layer, uint64_t items) {
  Filled filled;
  for (uint32_t index = 1;; ++index) {
    const auto next =
        items <= layer.capacity ? std::nullopt : plan_next_layer(parameters, index, layer);
    const uint64_t here = next ? layer.capacity : items;
    const double error = core::bloom::with_layout(parameters.layout, [&]<class Layout>() {
      return Layout::predicted_error(layer.geometry, here);
    });
    filled.log_of_no += std::log1p(-std::min(error, 1 - 1e-12));
    ++filled.layer_count;
    filled.bits_bytes += layer.geometry.size_bytes();
    if (!next) return filled;
    items -= here;
    layer = *next;
  }
}

}  // namespace

std::vector<PlanPoint> plan_curve(const FilterParameters& parameters) {
  constexpr int kPoints = 40;
  std::vector<PlanPoint> curve;
  const auto layer = core::bloom::ScalableFilter::plan(parameters);
  if (!layer) return curve;
  const uint64_t alive = core::bloom::live_generations(parameters);
  const double generations = parameters.window.is_set() ? parameters.window.generations : 1;
  const auto capacity = static_cast<double>(parameters.capacity);
  for (int i = 1; i <= kPoints; ++i) {
    const double items = 2 * capacity * i / kPoints;
    const auto items_of_one = static_cast<uint64_t>(std::ceil(items / generations));
    const Filled one = fill(parameters, *layer, items_of_one);
    // The generations' errors are independent. expm1() is used because it is exact for small rates.
    const double rate = -std::expm1(static_cast<double>(alive) * one.log_of_no);
    const uint64_t bytes = core::bloom::accounted_bytes(parameters.layout, alive * one.layer_count,
                                                        alive * one.bits_bytes) +
                           core::bloom::window_bytes(parameters);
    curve.push_back({items, std::max(0.0, rate), bytes});
  }
  return curve;
}

}  // namespace server::admin
