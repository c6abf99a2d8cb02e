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

// Logarithm of the chance that a filter, or a generation of one, with so many items says "no" to
// an absent one: they fill one layer after the other.
double log_of_no(const FilterParameters& parameters, LayerPlan layer, uint64_t items) {
  double sum = 0;
  for (uint32_t index = 1;; ++index) {
    const auto next =
        items <= layer.capacity ? std::nullopt : plan_next_layer(parameters, index, layer);
    const uint64_t here = next ? layer.capacity : items;
    const double error = core::bloom::with_layout(parameters.layout, [&]<class Layout>() {
      return Layout::predicted_error(layer.geometry, here);
    });
    sum += std::log1p(-std::min(error, 1 - 1e-12));
    if (!next) return sum;
    items -= here;
    layer = *next;
  }
}

}  // namespace

std::vector<std::pair<double, double>> plan_curve(const FilterParameters& parameters) {
  constexpr int kPoints = 40;
  std::vector<std::pair<double, double>> curve;
  const auto layer = core::bloom::ScalableFilter::plan(parameters);
  if (!layer) return curve;
  const auto alive = static_cast<double>(core::bloom::live_generations(parameters));
  const double generations = parameters.window.is_set() ? parameters.window.generations : 1;
  const auto capacity = static_cast<double>(parameters.capacity);
  for (int i = 1; i <= kPoints; ++i) {
    const double items = 2 * capacity * i / kPoints;
    const auto items_of_one = static_cast<uint64_t>(std::ceil(items / generations));
    // Generations err independently; expm1 keeps the digits of small rates.
    const double rate = -std::expm1(alive * log_of_no(parameters, *layer, items_of_one));
    curve.emplace_back(items, std::max(0.0, rate));
  }
  return curve;
}

}  // namespace server::admin
