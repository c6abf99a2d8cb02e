// SPDX-License-Identifier: MIT
#include "core/bloom/scalable_filter.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

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

}  // namespace

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
  if (!plan) return std::nullopt;
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

void ScalableFilter::prefetch(ItemHash hash, uint64_t bytes_min) const {
  with_layout(layout(), [&]<class Layout>() {
    for (const Layer& layer : layers()) {
      if (layer.bits().size_bytes() >= bytes_min) layer.prefetch<Layout>(hash);
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
  for (const Layer& each : own) sum += each.item_count();
  return sum;
}

bool ScalableFilter::rotate(const WindowRotation& rotation) {
  Window& window = *chain_->window;
  if (!window.allows(rotation)) return false;
  const bool is_empty = generation_item_count(window.generations().size() - 1) == 0;
  if (window.is_new(rotation) && !is_empty) {
    const auto plan = plan_first_layer(chain_->parameters);
    if (!plan) return false;
    auto layer = Layer::create(*plan, array_sharing(layout()));
    if (!layer) return false;
    chain_->layers.push_back(std::move(*layer));
    chain_->error_rates.push_back(plan->error_rate);
  }
  drop_layers(0, window.rotate(rotation, is_empty));
  return true;
}

std::unique_ptr<ScalableFilter> ScalableFilter::take_dropped() {
  return is_chain() ? std::move(chain_->dropped) : nullptr;
}

uint64_t ScalableFilter::item_count() const {
  uint64_t sum = 0;
  for (const Layer& layer : layers()) sum += layer.item_count();
  return sum;
}

uint64_t ScalableFilter::capacity() const {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  uint64_t sum = 0;
  for (const Layer& layer : layers()) sum += std::min(layer.capacity(), kMost - sum);
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
  return {layer.capacity(), layer.item_count(), layer_error_rate_of(index), layer.geometry(),
          predicted_error_of(layout(), layer)};
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

}  // namespace core::bloom
