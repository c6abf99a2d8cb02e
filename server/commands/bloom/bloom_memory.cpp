// SPDX-License-Identifier: MIT
#include "server/commands/bloom/bloom_memory.h"

#include <algorithm>
#include <limits>

#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/window.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {

using core::bloom::accounted_bytes;
using core::bloom::FilterParameters;
using core::bloom::ScalableFilter;

namespace {

// Returns the size that the filter would have with `more_layers` further layers. The generations
// that its window does not have yet are included, because a rotation does not check the limit.
uint64_t whole_bytes(const ScalableFilter& filter, uint64_t more_layers) {
  uint64_t layer_count = filter.layer_count();
  uint64_t bits_bytes = filter.size_bytes() - accounted_bytes(filter.layout(), layer_count, 0);
  layer_count += more_layers;
  if (filter.window() != nullptr) {
    const FilterParameters parameters = filter.parameters();
    const uint64_t all = live_generations(parameters);
    const uint64_t future = all - std::min<uint64_t>(all, filter.window()->generations().size());
    layer_count += future;
    bits_bytes += future * planned_bytes(parameters);
  }
  return accounted_bytes(filter.layout(), layer_count, bits_bytes);
}

// A window of items rotates when its newest generation has its number of items. If a generation has
// no room for them and cannot grow until it has, the window would reject new items forever.
core::Result<> check_generations(const Admission& admission, const FilterParameters& parameters) {
  const core::bloom::WindowSettings& window = parameters.window;
  if (!window.counts_items()) return {};
  const uint64_t generation_items = (window.length + window.generations - 1) / window.generations;
  if (!parameters.is_scaling()) {
    if (generation_parameters(parameters).capacity >= generation_items) return {};
    return core::Error{
        "ERR a NONSCALING window of items needs at least its length as the capacity"};
  }
  const uint64_t all = live_generations(parameters);
  const uint64_t layers_max =
      std::min<uint64_t>(admission.filter_layers_max(), core::bloom::Window::kGrownLayersMax);
  // The forecast of each generation counts the parts of a filter that the generations share.
  const uint64_t shared_bytes = (all - 1) * (core::bloom::kFilterBytes + core::bloom::kChainBytes);
  const uint64_t filter_bytes_max = admission.filter_bytes_max();
  const uint64_t own_bytes = window_bytes(parameters);
  const uint64_t left_bytes = filter_bytes_max - std::min(filter_bytes_max, own_bytes);
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const core::bloom::ScalingLimits limits{
      .bytes = (left_bytes + std::min(shared_bytes, kMost - left_bytes)) / all,
      .layers = layers_max / all};
  switch (forecast_scaling(parameters, generation_items, limits).limit) {
    case core::bloom::ScalingLimit::kNone:
      return {};
    case core::bloom::ScalingLimit::kMemory:
      return core::Error{std::string(kFilterTooLarge)};
    case core::bloom::ScalingLimit::kErrorRate:
    case core::bloom::ScalingLimit::kLayers:
      break;
  }
  return core::Error{std::string(kWindowNeedsCapacity)};
}

}  // namespace

FilterBudget::FilterBudget(const Context& ctx, const core::bloom::ScalableFilter& filter)
    : admission_(ctx.admission()), filter_(filter) {}

uint64_t FilterBudget::left_of_limit_bytes() const {
  const uint64_t limit_bytes = admission_.filter_bytes_max();
  const uint64_t grown_bytes = whole_bytes(filter_, 1);
  return limit_bytes > grown_bytes ? limit_bytes - grown_bytes : 0;
}

uint64_t FilterBudget::available_bytes() const {
  return std::min(admission_.memory().available_bytes(), left_of_limit_bytes());
}

bool FilterBudget::fits(uint64_t bytes) const {
  refusal_ = kCannotInsert;
  if (filter_.layer_count() >= admission_.filter_layers_max()) {
    refusal_ = kTooManyLayers;
    return false;
  }
  if (bytes > left_of_limit_bytes()) {
    refusal_ = kFilterTooLarge;
    return false;
  }
  return admission_.memory().fits(bytes);
}

std::string_view FilterBudget::refusal() const {
  // RedisBloom has one text for all these failures, so filters of its layout have it, too.
  const bool is_theirs = filter_.layout() == core::bloom::RedisBloomLayout::kId;
  const bool has_own_text = refusal_ == kCannotInsert && !is_theirs;
  return has_own_text && !filter_.next_layer_bytes() ? core::bloom::kNoNextLayer : refusal_;
}

LoadBudget::LoadBudget(const Admission& admission)
    : admission_(admission),
      memory_bytes_(admission.obtainable_memory_bytes()),
      limit_bytes_(admission.filter_bytes_max()) {}

bool LoadBudget::admits(const ScalableFilter& filter) const {
  return whole_bytes(filter, 0) <= limit_bytes_;
}

uint64_t LoadBudget::available_bytes() const {
  return std::min(memory_bytes_, limit_bytes_);
}

bool LoadBudget::fits(uint64_t bytes) const {
  if (bytes > limit_bytes_) return false;
  memory_was_short_ = !admission_.memory_suffices(bytes);
  return !memory_was_short_;
}

std::string_view LoadBudget::refusal() const {
  const bool is_too_large = limit_bytes_ < memory_bytes_ && !memory_was_short_;
  return is_too_large ? kFilterTooLarge : admission_.memory_refusal();
}

core::Result<std::unique_ptr<core::bloom::ScalableFilter>> create_filter(
    const Admission& admission, const core::bloom::FilterParameters& parameters,
    int64_t window_start_ms) {
  if (admission.has_limits()) {
    if (auto checked = check_generations(admission, parameters); !checked) return checked.error();
  }
  const uint64_t limit_bytes = admission.filter_bytes_max();
  const uint64_t layer_bytes = planned_bytes(parameters);
  // The limit is not checked if the filter's size might not fit into 64 bits. create() then fails
  // with its own error. Half the range stays unused, so that accounted_bytes() cannot overflow.
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const uint64_t layer_count = live_generations(parameters);
  const bool is_possible = layer_bytes <= kMost / layer_count / 2;
  const uint64_t array_bytes = layer_count * layer_bytes;
  if (is_possible && accounted_bytes(parameters.layout, layer_count, array_bytes) +
                             core::bloom::window_bytes(parameters) >
                         limit_bytes) {
    return core::Error{std::string(kFilterTooLarge)};
  }
  return core::bloom::ScalableFilter::create(parameters, admission.memory(), window_start_ms);
}

}  // namespace server
