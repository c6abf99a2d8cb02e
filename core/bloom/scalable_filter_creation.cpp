// SPDX-License-Identifier: MIT
//
// Creates filters: new filters, filters from parts that are not trusted, and copies.
#include <fmt/format.h>

#include <limits>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"

namespace core::bloom {
namespace {

// Maximum probes per lookup of an imported filter. RedisBloom's strictest rate needs 1,075.
constexpr uint16_t kMaxHashCount = 2048;

// Largest growth factor (EXPANSION) that a filter can store without a ScalableFilter::Chain.
constexpr uint32_t kSingleExpansionMax = std::numeric_limits<uint16_t>::max();

// Returns whether a filter of one layer can store the parameters without a ScalableFilter::Chain.
// Unusual parameters, such as a window or a seed, need one.
bool is_usual(const FilterParameters& parameters) {
  FilterParameters usual;
  usual.error_rate = parameters.error_rate;
  usual.capacity = parameters.capacity;
  usual.expansion = parameters.expansion;
  usual.layout = parameters.layout;
  usual.region_bits = parameters.region_bits;
  return parameters == usual && parameters.expansion <= kSingleExpansionMax;
}

Result<> check_parameters(const FilterParameters& parameters) {
  if (!is_rate(parameters.error_rate)) {
    return Error{std::string(kErrorRateRange)};
  }
  if (parameters.capacity == 0) return Error{std::string(kCapacityIsZero)};
  const double ratio = parameters.tightening_ratio;
  if (ratio != 0 && !is_rate(ratio)) return Error{std::string(kTighteningRange)};
  if (!parameters.window.is_set()) return {};
  if (!parameters.window.is_valid()) return Error{"ERR window out of range"};
  if (!layout_row(parameters.layout).takes_window) return Error{"ERR layout without windows"};
  return {};
}

bool is_valid_geometry(LayoutId layout, const Geometry& geometry) {
  if (geometry.bit_count == 0 || geometry.bit_count > BitArray::kMaxBits) return false;
  if (geometry.hash_count == 0 || geometry.hash_count > kMaxHashCount) return false;
  return with_layout(layout, [&]<class Layout>() { return Layout::is_valid(geometry); });
}

Result<> check_parts(LayoutId layout, std::span<const LayerParts> parts) {
  if (parts.empty()) return Error{"ERR filter without layers"};
  uint64_t total = 0;
  for (const LayerParts& part : parts) {
    if (!is_valid_geometry(layout, part.geometry)) return Error{"ERR layer of an invalid shape"};
    if (part.bits.bit_count() != part.geometry.bit_count) {
      return Error{"ERR layer with an array of another size"};
    }
    if (part.capacity == 0 || !is_rate(part.error_rate)) {
      return Error{"ERR layer of an invalid capacity or error rate"};
    }
    if (__builtin_add_overflow(total, part.item_count, &total)) {
      return Error{"ERR filter with an impossible item count"};
    }
  }
  return {};
}

// Checks that the layers match the generations of the window. Does not check the memory of the next
// generation, which needs as much as each existing generation.
Result<> check_window(const FilterParameters& parameters, const Window* window,
                      std::span<const LayerParts> parts) {
  if (!parameters.window.is_set() && window == nullptr) return {};
  if (window == nullptr || window->settings() != parameters.window)
    return Error{"ERR no such window"};
  const uint64_t capacity = generation_parameters(parameters).capacity;
  const Error mismatch{"ERR generations of other layers"};
  size_t layer_count = 0;
  for (const Window::Generation& generation : window->generations()) {
    if (layer_count >= parts.size() || parts[layer_count].capacity != capacity) return mismatch;
    layer_count += generation.layer_count;
  }
  if (layer_count != parts.size()) return mismatch;
  return {};
}

}  // namespace

static_assert(sizeof(ScalableFilter) == kFilterBytes);
static_assert(sizeof(Layer) + sizeof(double) == kLayerBytes);

Error does_not_fit(uint64_t size_bytes) {
  return Error{fmt::format("ERR Insufficient memory to create filter of {} bytes", size_bytes)};
}

Result<LayerPlan> ScalableFilter::plan(const FilterParameters& asked) {
  if (auto checked = check_parameters(asked); !checked) return checked.error();
  const LayoutRow& layout = layout_row(asked.layout);
  if (layer_error_rate(asked, 0) < layout.min_error_rate) {
    return Error{fmt::format("ERR the error rate is too small for layout {}", layout.name)};
  }
  const auto plan = plan_first_layer(asked);
  if (plan) return *plan;
  if (!is_rate(layer_error_rate(asked, 0))) return Error{"ERR could not create filter"};
  return does_not_fit(planned_bytes(asked));
}

Result<std::unique_ptr<ScalableFilter>> ScalableFilter::create(const FilterParameters& asked,
                                                               const MemoryBudget& budget,
                                                               int64_t start_ms) {
  static_assert(sizeof(Chain) == kChainBytes && sizeof(Window) == kWindowBytes);
  static_assert(sizeof(Window::Generation) == kGenerationBytes);
  const FilterParameters parameters = without_unused(asked);
  const auto plan = ScalableFilter::plan(parameters);
  if (!plan) return plan.error();
  const uint64_t layer_bytes = plan->geometry.size_bytes();
  const uint64_t size_bytes = layer_bytes * live_generations(parameters);
  if (size_bytes / layer_bytes != live_generations(parameters) || !budget.fits(size_bytes)) {
    return does_not_fit(size_bytes);
  }
  auto layer = Layer::create(*plan, array_sharing(parameters.layout));
  if (!layer) return does_not_fit(size_bytes);

  std::unique_ptr<ScalableFilter> filter(new ScalableFilter);
  if (is_usual(parameters) && plan->capacity == parameters.capacity) {
    filter->become_single(parameters, std::move(*layer));
  } else {
    auto chain = std::make_unique<Chain>();
    chain->parameters = parameters;
    chain->layers.push_back(std::move(*layer));
    chain->error_rates.push_back(plan->error_rate);
    if (parameters.window.is_set()) {
      chain->window = std::make_unique<Window>(parameters.window, start_ms);
    }
    filter->become_chain(std::move(chain));
  }
  return filter;
}

Result<std::unique_ptr<ScalableFilter>> ScalableFilter::assemble(const FilterParameters& parameters,
                                                                 std::vector<LayerParts> parts,
                                                                 const Window* window) {
  if (auto checked = check_parts(parameters.layout, parts); !checked) return checked.error();
  FilterParameters own = without_unused(parameters);
  if (!own.window.is_set()) own.capacity = parts.front().capacity;
  if (auto checked = check_window(own, window, parts); !checked) return checked.error();
  if (auto checked = check_parameters(own); !checked) return checked.error();

  auto chain = std::make_unique<Chain>();
  chain->parameters = own;
  for (LayerParts& part : parts) {
    chain->layers.emplace_back(std::move(part.bits), part.geometry, part.capacity, part.item_count);
    chain->error_rates.push_back(part.error_rate);
  }
  if (window != nullptr) chain->window = std::make_unique<Window>(*window);
  std::unique_ptr<ScalableFilter> filter(new ScalableFilter);
  const bool is_single =
      parts.size() == 1 && is_usual(own) && chain->error_rates.front() == layer_error_rate(own, 0);
  if (is_single) {
    filter->become_single(own, std::move(chain->layers.front()));
  } else {
    filter->become_chain(std::move(chain));
  }
  return filter;
}

ScalableFilter::~ScalableFilter() {
  if (is_chain()) delete chain_;
}

std::unique_ptr<ScalableFilter> ScalableFilter::clone() const {
  std::vector<Layer> copies;
  for (const Layer& layer : layers()) {
    auto copy = layer.clone();
    if (!copy) return nullptr;
    copies.push_back(std::move(*copy));
  }
  std::unique_ptr<ScalableFilter> filter(new ScalableFilter);
  if (!is_chain()) {
    filter->become_single(parameters(), std::move(copies.front()));
    return filter;
  }
  auto chain = std::make_unique<Chain>();
  chain->parameters = chain_->parameters;
  chain->layers = std::move(copies);
  chain->error_rates = chain_->error_rates;
  if (window() != nullptr) chain->window = std::make_unique<Window>(*window());
  filter->become_chain(std::move(chain));
  return filter;
}

bool ScalableFilter::detach_from_children() {
  for (Layer& layer : layers()) {
    if (!layer.bits().detach_from_children()) return false;
  }
  return true;
}

void ScalableFilter::become_single(const FilterParameters& parameters, Layer layer) {
  first_ = std::move(layer);
  first_.filter_layout_ = static_cast<uint8_t>(parameters.layout);
  first_.filter_expansion_ = static_cast<uint16_t>(parameters.expansion);
  first_.filter_is_chain_ = false;
  error_rate_ = parameters.error_rate;
}

void ScalableFilter::become_chain(std::unique_ptr<Chain> chain) {
  first_ = Layer();
  first_.filter_layout_ = static_cast<uint8_t>(chain->parameters.layout);
  first_.filter_is_chain_ = true;
  chain_ = chain.release();
}

std::unique_ptr<ScalableFilter> create_empty_like(const ScalableFilter& filter) {
  const LayerInfo first = filter.layer_info(0);
  auto bits = BitArray::allocate(first.geometry.bit_count, array_sharing(filter.layout()));
  if (!bits) return nullptr;
  FilterParameters parameters = filter.parameters();
  parameters.item_count_is_estimated = false;
  std::vector<LayerParts> parts;
  parts.push_back({first.geometry, first.capacity, 0, first.error_rate, std::move(*bits)});
  std::optional<Window> window;
  if (const Window* const old = filter.window()) {
    // The new window has one generation, with the ordinal and the start of the old window's newest
    // generation. So the next rotation is due at the same position as in the old window.
    const WindowRotation newest = old->newest();
    window = Window::restore(old->settings(), newest, {{newest.ordinal, 1}});
    if (!window) return nullptr;
  }
  auto empty = ScalableFilter::assemble(parameters, std::move(parts), window ? &*window : nullptr);
  return empty ? std::move(*empty) : nullptr;
}

}  // namespace core::bloom
