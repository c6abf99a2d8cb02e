// SPDX-License-Identifier: MIT
#include "server/admin/figures/plan_curve.h"

#include <algorithm>
#include <cmath>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"

namespace server::admin {

std::vector<std::pair<double, double>> plan_curve(const core::bloom::FilterParameters& parameters) {
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
    const double error = core::bloom::with_layout(parameters.layout, [&]<class Layout>() {
      return Layout::predicted_error(layer->geometry, items_of_one);
    });
    // The chance that none of the generations errs, with few digits lost where rates are small.
    const double rate = -std::expm1(alive * std::log1p(-std::min(error, 1 - 1e-12)));
    curve.emplace_back(items, rate);
  }
  return curve;
}

}  // namespace server::admin
