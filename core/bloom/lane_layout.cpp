// SPDX-License-Identifier: MIT
#include "core/bloom/lane_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace core::bloom {
namespace {

// Additional memory, as a fraction of the classic optimum, that a layer may use so that a lookup
// reads fewer lines. The constants apply to a filter that does not grow, and to the first and the
// later layers of a growing filter. With kSlackOfFixed, lookups read one line if the error rate is
// at least 0.001. Later layers get the smallest slack, because they are bigger.
constexpr double kSlackOfFixed = 0.083;
constexpr double kSlackOfFirst = 0.06;
constexpr double kSlackOfLater = 0.03;
// Layers of a growing filter that get at least this share of the filter's error rate have the slack
// kSlackOfFirst. All other layers of a growing filter have kSlackOfLater.
constexpr double kFirstShareMin = 0.25;

// Each of the first layers of a growing filter gets one of these shares of the filter's error rate.
// The shares follow RedisBloom's powers of 1/2, and then fall more slowly, so that filters with
// many layers need less memory.
constexpr std::array kShares{0.55, 0.185, 0.096, 0.049, 0.0245, 0.0235, 0.0145};
// Share of the error rate that the first layer of a small filter gets. The layer's array has only a
// few lines, and a slightly higher error rate can save a whole line.
constexpr double kSmallFirstShare = 13.0 / 16;
constexpr uint64_t kSmallItems = 512;
// Each later layer i gets the share kTailShare / (i + 1)^2 of the error rate. The sum of 1/j^2 from
// j = 8 on is pi^2/6 - 1 - 1/4 - … - 1/49 = 0.133137.
constexpr double kTailShare =
    (1 - std::accumulate(kShares.begin(), kShares.end(), 0.0)) / 0.1331371;

double lane_share_of(uint64_t capacity, uint32_t index) {
  const bool is_small = capacity < kSmallItems;
  const double first = is_small ? kSmallFirstShare : kShares[0];
  if (index == 0) return first;
  const double i = index;
  const double share = index < kShares.size() ? kShares[index] : kTailShare / ((i + 1) * (i + 1));
  return share * (1 - first) / (1 - kShares[0]);
}

// Lowest error rate for which a layer is sized. Layers with a lower rate get the size for this
// rate.
constexpr double kSizedRateMin = 0x1p-56;

// Probability that an absent item has the same 64-bit hash as one of `item_count` items.
double equal_hash_share(double item_count) {
  return item_count * 0x1p-64;
}

double slack_of(const FilterParameters& parameters, double error_rate) {
  if (!parameters.is_scaling()) return kSlackOfFixed;
  return error_rate >= kFirstShareMin * parameters.error_rate ? kSlackOfFirst : kSlackOfLater;
}

// An absent item whose hash equals that of an added item is a false positive, whatever the size of
// the layer. The expected share of such items is subtracted from the requested error rate. The
// layer is sized for the remaining rate, or for half of the requested rate if that is higher.
std::optional<Geometry> solve_lane_geometry(uint64_t capacity, double error_rate, double slack) {
  const double left = std::max(error_rate - equal_hash_share(double(capacity)), error_rate / 2);
  return geometry_of(solve_line_model(
      capacity, std::max(left, kSizedRateMin),
      {.bits_per_line_max = kMaxLanesPerItem, .memory_slack = slack, .has_lanes = true}));
}

}  // namespace

std::optional<LayerPlan> LaneLayout::plan(const FilterParameters& parameters, uint64_t capacity,
                                          double error_rate) {
  if (capacity > kMaxLayerCapacity) return std::nullopt;
  const double slack = slack_of(parameters, error_rate);
  thread_local SolvedSizes solved;
  return LayerPlan::of(capacity, error_rate, solved.find({capacity, error_rate, slack}, [&] {
    return solve_lane_geometry(capacity, error_rate, slack);
  }));
}

double LaneLayout::layer_error_rate(const FilterParameters& parameters, uint32_t index) {
  if (index >= kMaxNativeLayers) return 0;
  const double ratio = parameters.tightening_ratio;
  return parameters.error_rate * (ratio > 0 ? (1 - ratio) * std::pow(ratio, index)
                                            : lane_share_of(parameters.capacity, index));
}

bool LaneLayout::is_valid(const Geometry& geometry) {
  return geometry.bit_count % kLineBits == 0 && has_valid_lines(geometry, kMaxLanesPerItem);
}

double LaneLayout::predicted_error(const Geometry& geometry, uint64_t item_count) {
  LineModel model{double(geometry.bit_count / kLineBits), geometry.lines_per_lookup,
                  geometry.hash_count / unsigned{geometry.lines_per_lookup}};
  model.has_lanes = true;
  const double items = double(item_count);
  return std::min(1.0, model.error_rate(items) + equal_hash_share(items));
}

LayoutId native_layout(int version, const FilterParameters& parameters) {
  if (version < 2) return kNativeLayout;
  // These two bounds limit the false positives that items with equal hashes cause. Within the
  // bounds, such items use only a small part of the first layer's error rate. This holds even when
  // the filter grows to many times its capacity.
  constexpr double kFirstRateMin = 0x1p-24;
  constexpr double kEqualHashShareMax = 0x1p-10;
  FilterParameters lanes = parameters;
  lanes.layout = kLaneLayout;
  const double first_rate = core::bloom::layer_error_rate(lanes, 0);
  const double equal = equal_hash_share(double(parameters.capacity));
  const bool suffices = first_rate >= kFirstRateMin && equal <= kEqualHashShareMax * first_rate;
  return suffices ? kLaneLayout : kNativeLayout;
}

}  // namespace core::bloom
