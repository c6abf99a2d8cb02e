// SPDX-License-Identifier: MIT
#include "core/bloom/parameters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/bloom/native_layout.h"
#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/valkeybloom_layout.h"

namespace core::bloom {
namespace {

// The share of the error rate that the first layer of a growing native filter gets. Filters that
// are sized right never have another layer, so it is large; a small filter's array is a handful of
// whole lines, where a little more error saves one of them.
constexpr double kFirstShare = 5.0 / 8;
constexpr double kFirstShareOfSmall = 13.0 / 16;
constexpr uint64_t kSmallCapacity = 512;

// The rest is shared out as 1/i up to this layer and as 1/i^2 beyond, which converges.
constexpr double kHarmonicLayers = 10;
// H(10) + 10 (pi^2/6 - sum of 1/i^2 up to 10), rounded up.
constexpr double kHarmonicSum = 3.880632;

double native_share(uint64_t capacity, uint32_t index) {
  const double first = capacity < kSmallCapacity ? kFirstShareOfSmall : kFirstShare;
  if (index == 0) return first;
  const double i = index;
  const double weight = i <= kHarmonicLayers ? 1 / i : kHarmonicLayers / (i * i);
  return (1 - first) * weight / kHarmonicSum;
}

// Powers by repeated squaring, in the order in which valkey-bloom's compiler multiplies them: the
// last bit can decide a layer's size.
double integer_power(double base, uint32_t exponent) {
  double power = 1;
  for (;; base *= base) {
    if (exponent & 1) power *= base;
    exponent /= 2;
    if (exponent == 0) return power;
  }
}

std::optional<LayerPlan> plan_layer(const FilterParameters& parameters, uint64_t capacity,
                                    double error_rate) {
  if (capacity == 0 || !is_rate(error_rate)) return std::nullopt;
  std::optional<Geometry> geometry;
  switch (parameters.layout) {
    case LayoutId::kNative:
      if (capacity > kMaxLayerCapacity) return std::nullopt;
      geometry = NativeLayout::size(capacity, error_rate);
      break;
    case LayoutId::kRedisBloom:
      if (parameters.rounds_to_power_of_two) {
        return RedisBloomLayout::size_rounded(capacity, error_rate);
      }
      geometry = RedisBloomLayout::size(capacity, error_rate);
      break;
    case LayoutId::kValkeyBloom:
      geometry = ValkeyBloomLayout::size(capacity, error_rate);
      break;
  }
  if (!geometry) return std::nullopt;
  return LayerPlan{capacity, error_rate, *geometry};
}

double next_error_rate(const FilterParameters& parameters, uint32_t index, double last_rate) {
  // RedisBloom halves what the last layer has, whoever made that layer.
  if (parameters.layout == LayoutId::kRedisBloom) return last_rate * 0.5;
  return layer_error_rate(parameters, index);
}

}  // namespace

std::string_view layout_name(LayoutId layout) {
  switch (layout) {
    case LayoutId::kRedisBloom:
      return "redisbloom";
    case LayoutId::kValkeyBloom:
      return "valkey-bloom";
    case LayoutId::kNative:
      break;
  }
  return "native";
}

uint64_t lookup_lines(const Geometry& geometry) {
  const bool has_lines = geometry.lines_per_lookup != 0;
  const uint64_t lines = has_lines ? geometry.lines_per_lookup : geometry.hash_count;
  // A small array has not so many.
  return std::min(lines, (geometry.bit_count + kLineBits - 1) / kLineBits);
}

double estimated_items(const Geometry& geometry, double fill_ratio) {
  const double bits = static_cast<double>(geometry.bit_count);
  // A full array has no estimate; one clear bit gives the largest that means anything.
  const double share = std::min(fill_ratio, (bits - 1) / bits);
  return -bits / geometry.hash_count * std::log1p(-share);
}

double layer_error_rate(const FilterParameters& parameters, uint32_t index) {
  const double rate = parameters.error_rate;
  if (!parameters.is_scaling()) return rate;
  const double ratio = parameters.tightening_ratio;
  switch (parameters.layout) {
    case LayoutId::kNative:
      if (index >= kMaxNativeLayers) return 0;
      // An explicit ratio r gives (1 - r) r^i, which sums to one as well (Almeida et al. 2007).
      return rate * (ratio > 0 ? (1 - ratio) * std::pow(ratio, index)
                               : native_share(parameters.capacity, index));
    case LayoutId::kRedisBloom:
      return std::ldexp(rate, -static_cast<int>(std::min<uint32_t>(index, 4000)) - 1);
    case LayoutId::kValkeyBloom: {
      const double tightened = rate * integer_power(ratio > 0 ? ratio : 0.5, index);
      return tightened > std::numeric_limits<double>::min() ? tightened : 0;
    }
  }
  return 0;
}

std::optional<LayerPlan> plan_first_layer(const FilterParameters& parameters) {
  return plan_layer(parameters, parameters.capacity, layer_error_rate(parameters, 0));
}

std::optional<LayerPlan> plan_next_layer(const FilterParameters& parameters, uint32_t index,
                                         const LayerPlan& last) {
  if (!parameters.is_scaling() || index >= kMaxLayers) return std::nullopt;
  constexpr uint64_t kMaxCapacity = std::numeric_limits<int64_t>::max();
  if (last.capacity > kMaxCapacity / parameters.expansion) return std::nullopt;
  return plan_layer(parameters, last.capacity * parameters.expansion,
                    next_error_rate(parameters, index, last.error_rate));
}

uint64_t accounted_bytes(LayoutId layout, uint64_t layer_count, uint64_t bits_bytes) {
  // The sizes of ScalableFilter, its Chain, and a layer in it; scalable_filter.cpp asserts them.
  if (layout == LayoutId::kValkeyBloom) {
    const uint64_t slots = layer_count <= 1 ? 1 : std::max<uint64_t>(4, std::bit_ceil(layer_count));
    return 48 + 8 * slots + 208 * layer_count + bits_bytes;
  }
  if (layout == LayoutId::kRedisBloom) return 32 + 64 * layer_count + bits_bytes;
  if (layer_count <= 1) return kFilterBytes + bits_bytes;
  return kFilterBytes + kChainBytes + kLayerBytes * layer_count + bits_bytes;
}

FilterParameters without_unused(FilterParameters parameters) {
  if (parameters.layout != LayoutId::kValkeyBloom) parameters.seed = kFixedSeed;
  if (parameters.layout != LayoutId::kRedisBloom) {
    parameters.hashes_32_bits = false;
    parameters.rounds_to_power_of_two = false;
  }
  if (parameters.layout != LayoutId::kRedisBloom || parameters.is_scaling()) {
    parameters.idle_growth = FilterParameters::kUsualIdleGrowth;
  }
  return parameters;
}

uint64_t planned_bytes(const FilterParameters& parameters) {
  const auto plan = plan_first_layer(parameters);
  return plan ? plan->geometry.size_bytes() : std::numeric_limits<uint64_t>::max();
}

ScalingForecast forecast_scaling(const FilterParameters& parameters, uint64_t capacity_wanted,
                                 uint64_t limit_bytes) {
  constexpr uint64_t kMostCapacity = std::numeric_limits<uint64_t>::max();
  ScalingForecast forecast;
  uint64_t bits_bytes = 0;
  auto plan = plan_first_layer(parameters);
  for (uint32_t layer_count = 1;; ++layer_count) {
    if (!plan) {
      // A layer cannot be planned when its rate is gone or its size is out of any range.
      const bool rate_is_gone = !is_rate(layer_error_rate(parameters, layer_count - 1));
      forecast.limit = rate_is_gone ? ScalingLimit::kErrorRate : ScalingLimit::kMemory;
      return forecast;
    }
    bits_bytes += (plan->geometry.bit_count + 7) / 8;
    if (accounted_bytes(parameters.layout, layer_count, bits_bytes) > limit_bytes) {
      forecast.limit = ScalingLimit::kMemory;
      return forecast;
    }
    forecast.capacity += std::min(plan->capacity, kMostCapacity - forecast.capacity);
    if (forecast.capacity >= capacity_wanted || !parameters.is_scaling()) return forecast;
    plan = plan_next_layer(parameters, layer_count, *plan);
  }
}

}  // namespace core::bloom
