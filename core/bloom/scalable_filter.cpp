// SPDX-License-Identifier: MIT
//
// One class: how a filter is created, grows, takes items and answers for them.
#include "core/bloom/scalable_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/bloom/filter_adder.h"
#include "core/bloom/layouts.h"
#include "core/bloom/window.h"

namespace core::bloom {
namespace {

double predicted_error_of(LayoutId layout, const Layer& layer) {
  return with_layout(layout, [&]<class Layout>() {
    if constexpr (DeletableLayout<Layout>) {
      const auto& [words, geometry] = layer.view();
      return Layout::error_now(words, geometry, layer.item_count());
    }
    return Layout::predicted_error(layer.geometry(), layer.item_count());
  });
}

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
  for (const LayerParts& part : parts) {
    if (!is_valid_geometry(layout, part.geometry)) return Error{"ERR layer of an invalid shape"};
    if (part.bits.bit_count() != part.geometry.bit_count) {
      return Error{"ERR layer with an array of another size"};
    }
    if (part.capacity == 0 || !is_rate(part.error_rate)) {
      return Error{"ERR layer of an invalid capacity or error rate"};
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

ScalableFilter::Chain& ScalableFilter::make_chain() {
  if (is_chain()) return *chain_;
  auto chain = std::make_unique<Chain>();
  chain->parameters = parameters();
  chain->error_rates.push_back(layer_error_rate_of(0));
  chain->layers.push_back(std::move(first_));
  become_chain(std::move(chain));
  return *chain_;
}

std::span<const Layer> ScalableFilter::layers() const {
  return is_chain() ? std::span<const Layer>(chain_->layers) : std::span<const Layer>(&first_, 1);
}

std::span<Layer> ScalableFilter::layers() {
  return is_chain() ? std::span<Layer>(chain_->layers) : std::span<Layer>(&first_, 1);
}

FilterParameters ScalableFilter::parameters() const {
  if (is_chain()) return chain_->parameters;
  FilterParameters parameters;
  parameters.error_rate = error_rate_;
  parameters.capacity = first_.capacity();
  parameters.expansion = first_.filter_expansion_;
  parameters.layout = layout();
  if (layout_row(parameters.layout).takes_region_bits) {
    parameters.region_bits = static_cast<uint8_t>(first_.cell_bits_);
  }
  return parameters;
}

std::span<const Layer> ScalableFilter::layers_at(int64_t now_ms) const {
  if (!is_chain()) return {&first_, 1};
  const std::span<const Layer> all(chain_->layers);
  return window() != nullptr ? all.subspan(window()->layers_over_at(now_ms)) : all;
}

double ScalableFilter::layer_error_rate_of(size_t index) const {
  return is_chain() ? chain_->error_rates[index] : layer_error_rate(parameters(), 0);
}

std::optional<LayerPlan> ScalableFilter::next_plan() const {
  const Layer& last = layers().back();
  const LayerPlan last_plan{last.capacity(), layer_error_rate_of(layer_count() - 1),
                            last.geometry()};
  const size_t index =
      window() != nullptr ? window()->generations().back().layer_count : layer_count();
  return plan_next_layer(parameters(), static_cast<uint32_t>(index), last_plan);
}

std::optional<uint64_t> ScalableFilter::next_layer_bytes() const {
  const auto plan = next_plan();
  if (!plan || (window() != nullptr && !window()->may_grow())) return std::nullopt;
  return plan->geometry.size_bytes();
}

bool ScalableFilter::grow(const MemoryBudget& budget) {
  const auto plan = next_plan();
  if (!plan || !budget.fits(plan->geometry.size_bytes())) return false;
  if (window() != nullptr && !window()->may_grow()) return false;
  auto layer = Layer::create(*plan, array_sharing(layout()));
  if (!layer) return false;
  Chain& chain = make_chain();
  chain.layers.push_back(std::move(*layer));
  chain.error_rates.push_back(plan->error_rate);
  if (window() != nullptr) chain.window->record_layer();
  return true;
}

ItemHasher ScalableFilter::hasher() const {
  if (!is_chain()) return ItemHasher(layout(), false, kFixedSeed);
  return ItemHasher(layout(), chain_->parameters.hashes_32_bits, chain_->parameters.seed);
}

void ScalableFilter::drop_layers(size_t first, size_t count) {
  if (count == 0) return;
  if (chain_->dropped == nullptr) {
    auto chain = std::make_unique<Chain>();
    chain->parameters = generation_parameters(chain_->parameters);
    chain_->dropped.reset(new ScalableFilter);
    chain_->dropped->become_chain(std::move(chain));
  }
  const auto move_over = [&](auto& from, auto& to) {
    const auto begin = from.begin() + static_cast<ptrdiff_t>(first);
    const auto end = begin + static_cast<ptrdiff_t>(count);
    std::move(begin, end, std::back_inserter(to));
    from.erase(begin, end);
  };
  Chain& dropped = *chain_->dropped->chain_;
  move_over(chain_->layers, dropped.layers);
  move_over(chain_->error_rates, dropped.error_rates);
  if (chain_->window != nullptr) return;
  // The filter's capacity becomes that of its first remaining layer. assemble() does the same when
  // the filter is loaded from a file, so the filter and its loaded copy grow alike.
  chain_->parameters.capacity = chain_->layers.front().capacity();
}

AddOutcome ScalableFilter::add(std::string_view item, const MemoryBudget& budget) {
  return add(hasher()(item), budget);
}

AddOutcome ScalableFilter::add(ItemHash hash, const MemoryBudget& budget) {
  return with_layout(layout(),
                     [&]<class Layout>() { return Adder(*this, budget).add<Layout>(hash); });
}

AddOutcome ScalableFilter::add_new(ItemHash hash, const MemoryBudget& budget) {
  return with_layout(layout(),
                     [&]<class Layout>() { return Adder(*this, budget).replay<Layout>(hash); });
}

void ScalableFilter::replay_many(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                                 const MemoryBudget& budget) {
  assert(outcomes.size() >= hashes.size());
  with_layout(layout(), [&]<class Layout>() {
    Adder adder(*this, budget);
    for (size_t done = 0; done < hashes.size();) {
      done += adder.replay_some<Layout>(hashes.subspan(done), outcomes.subspan(done));
    }
  });
}

size_t ScalableFilter::add_many(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                                const MemoryBudget& budget, std::span<const bool> known) {
  assert(outcomes.size() >= hashes.size());
  assert(known.empty() || (known.size() >= hashes.size() && window() == nullptr));
  return with_layout(layout(), [&]<class Layout>() {
    Adder adder(*this, budget);
    const Adder::Known at_lookup{known, layer_count() - 1};
    for (size_t start = 0; start < hashes.size();) {
      start += adder.add_some<Layout>(hashes.subspan(start), outcomes.subspan(start),
                                      at_lookup.subspan(start));
      if (outcomes[start - 1] == AddOutcome::kFull) return start;
    }
    return hashes.size();
  });
}

Removal ScalableFilter::remove(ItemHash hash) {
  return with_layout(layout(), [&]<class Layout>() {
    if constexpr (DeletableLayout<Layout>) {
      const std::span<Layer> all = layers();
      for (size_t i = 0; i < all.size(); ++i) {
        const Removal removal = all[i].remove<Layout>(hash);
        if (removal == Removal::kAbsent) continue;
        // An emptied layer other than the last never accepts items again, so it is dropped. The
        // later layers move to earlier positions. Each moved layer keeps its error rate, which is
        // at most the rate planned for its new position.
        if (all[i].is_emptied_by(removal) && i + 1 < all.size()) drop_layers(i, 1);
        return removal;
      }
    } else {
      assert(false);
    }
    return Removal::kAbsent;
  });
}

void ScalableFilter::remove_many(std::span<const ItemHash> hashes, std::span<Removal> outcomes) {
  assert(outcomes.size() >= hashes.size());
  std::ranges::fill(outcomes.first(hashes.size()), Removal::kAbsent);
  with_layout(layout(), [&]<class Layout>() {
    if constexpr (DeletableLayout<Layout>) {
      // The result equals that of one remove() per item, because each layer gets the items in their
      // order. If a removal empties a layer, the layer is dropped, and the remaining items go on to
      // the next layer. The last layer is never dropped.
      for (size_t i = 0; i < layer_count();) {
        Layer& layer = layers()[i];
        const bool is_last = i + 1 == layer_count();
        bool is_over = false;
        for (size_t start = 0; start < hashes.size() && !is_over; start += kGroupItems) {
          const size_t count = std::min(kGroupItems, hashes.size() - start);
          is_over = layer.remove_group<Layout>(hashes.subspan(start, count),
                                               outcomes.subspan(start, count), !is_last);
        }
        if (is_over) {
          drop_layers(i, 1);
        } else {
          ++i;
        }
      }
    }
  });
}

bool ScalableFilter::may_contain(std::string_view item, int64_t now_ms) const {
  return may_contain(hasher()(item), now_ms);
}

bool ScalableFilter::may_contain(ItemHash hash, int64_t now_ms) const {
  return with_layout(layout(), [&]<class Layout>() {
    if (!is_chain()) return first_.check<Layout>(hash);
    return check_layers<Layout>(layers_at(now_ms), hash);
  });
}

void ScalableFilter::prefetch(std::span<const ItemHash> hashes, uint64_t bytes_min) const {
  with_layout(layout(), [&]<class Layout>() {
    const std::span<const Layer> all = layers();
    for (const Layer& layer : all) {
      if (layer.bits().size_bytes() < bytes_min) continue;
      if (&layer == &all.back()) {
        for (const ItemHash& hash : hashes) layer.prefetch<Layout>(hash);
      } else {
        for (const ItemHash& hash : hashes) layer.prefetch_for_absent<Layout>(hash);
      }
    }
  });
}

void ScalableFilter::may_contain_many(std::span<const ItemHash> hashes, std::span<bool> found,
                                      int64_t now_ms) const {
  assert(found.size() >= hashes.size());
  const std::span<const Layer> all = layers_at(now_ms);
  with_layout(layout(), [&]<class Layout>() {
    for (size_t start = 0; start < hashes.size(); start += kGroupItems) {
      const size_t count = std::min(kGroupItems, hashes.size() - start);
      const auto found_of_group = found.subspan(start, count);
      std::ranges::fill(found_of_group, false);
      check_layers_group<Layout>(all, hashes.subspan(start, count), found_of_group);
    }
  });
}

uint64_t ScalableFilter::generation_item_count(size_t index) const {
  size_t layer = 0;
  uint64_t sum = 0;
  const auto generations = window()->generations();
  for (size_t i = 0; i < index; ++i) layer += generations[i].layer_count;
  const auto own = layers().subspan(layer, generations[index].layer_count);
  for (const Layer& each : own) sum = add_counts(sum, each.item_count());
  return sum;
}

bool ScalableFilter::rotate(const WindowRotation& rotation, const MemoryBudget& budget) {
  Window& window = *chain_->window;
  if (!window.allows(rotation)) return false;
  const bool is_empty = generation_item_count(window.generations().size() - 1) == 0;
  if (window.is_new(rotation) && !is_empty && !add_generation(rotation, budget)) return false;
  drop_layers(0, window.rotate(rotation, is_empty));
  return true;
}

bool ScalableFilter::add_generation(const WindowRotation& rotation, const MemoryBudget& budget) {
  const auto plan = plan_first_layer(chain_->parameters);
  if (!plan) return false;
  const uint64_t new_bytes = plan->geometry.size_bytes();
  uint64_t dropped_bytes = 0;
  for (const Layer& layer : layers().first(window()->layers_dropped_by(rotation))) {
    dropped_bytes += layer.bits().size_bytes();
  }
  if (new_bytes > dropped_bytes && !budget.fits(new_bytes - dropped_bytes)) return false;
  auto layer = Layer::create(*plan, array_sharing(layout()));
  if (!layer) return false;
  chain_->layers.push_back(std::move(*layer));
  chain_->error_rates.push_back(plan->error_rate);
  return true;
}

std::unique_ptr<ScalableFilter> ScalableFilter::take_dropped() {
  return is_chain() ? std::move(chain_->dropped) : nullptr;
}

uint64_t ScalableFilter::item_count() const {
  uint64_t sum = 0;
  for (const Layer& layer : layers()) sum = add_counts(sum, layer.item_count());
  return sum;
}

uint64_t ScalableFilter::capacity() const {
  uint64_t sum = 0;
  for (const Layer& layer : layers()) sum = add_counts(sum, layer.capacity());
  return sum;
}

uint64_t ScalableFilter::size_bytes() const {
  uint64_t bits_bytes = 0;
  for (const Layer& layer : layers()) bits_bytes += layer.bits().bytes().size();
  const uint64_t own_bytes = accounted_bytes(layout(), layer_count(), bits_bytes);
  return window() != nullptr ? own_bytes + window_bytes(chain_->parameters) : own_bytes;
}

LayerInfo ScalableFilter::layer_info(size_t index) const {
  const Layer& layer = layers()[index];
  return {layer.capacity(), layer.item_count(), layer_error_rate_of(index), layer.geometry()};
}

const BitArray& ScalableFilter::layer_bits(size_t index) const {
  return layers()[index].bits();
}

BitArray& ScalableFilter::mutable_layer_bits(size_t index) {
  return layers()[index].bits();
}

double ScalableFilter::sampled_fill_ratio(size_t index, uint64_t max_bytes) const {
  return layers()[index].bits().fill_ratio(max_bytes);
}

double ScalableFilter::predicted_error_rate() const {
  double all_absent = 0;
  for (const Layer& layer : layers()) {
    all_absent += std::log1p(-predicted_error_of(layout(), layer));
  }
  return std::max(0.0, -std::expm1(all_absent));  // std::max avoids the result -0
}

double ScalableFilter::predicted_error_rate(size_t index) const {
  return predicted_error_of(layout(), layers()[index]);
}

}  // namespace core::bloom
