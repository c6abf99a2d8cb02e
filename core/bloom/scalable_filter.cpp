// SPDX-License-Identifier: MIT
#include "core/bloom/scalable_filter.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/bloom/layouts.h"
#include "core/bloom/window.h"

namespace core::bloom {
namespace {

template <class Layout>
bool check_layers(std::span<const Layer> layers, ItemHash hash) {
  // Prefetches all layers at once, except those that are probably in the cache.
  if (layers.size() > 1) {
    for (const Layer& layer : layers) {
      if (layer.bits().size_bytes() >= kCachedBytes) layer.prefetch<Layout>(hash);
    }
  }
  // The newest layer holds the most items, so it is the most likely to end the search.
  for (size_t i = layers.size(); i > 0; --i) {
    if (layers[i - 1].check<Layout>(hash)) return true;
  }
  return false;
}

// Sets found[i] for each item that some layer contains. Items with found[i] already set are
// skipped.
template <class Layout>
void check_layers_group(std::span<const Layer> layers, std::span<const ItemHash> hashes,
                        std::span<bool> found) {
  while (!layers.empty()) {
    std::array<ArrayView, kGroupArrays> arrays;
    const size_t count = std::min(layers.size(), arrays.size());
    for (size_t i = 0; i < count; ++i) arrays[i] = layers[layers.size() - 1 - i].view();
    Layout::check_group(std::span<const ArrayView>(arrays).first(count), hashes, found);
    layers = layers.first(layers.size() - count);
  }
}

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

// Adds items to a filter of one layout. REQUIRES: the template argument Layout of each member is
// the filter's layout.
class ScalableFilter::Adder {
 public:
  Adder(ScalableFilter& filter, const MemoryBudget& budget) : filter_(filter), budget_(budget) {}

  template <class Layout>
  AddOutcome add(ItemHash hash) {
    if (filter_.window() != nullptr) {
      if (generation_room() == 0) {
        // Journals contain only items that change the filter, so only such items may start a
        // generation.
        if (is_add_without_effect<Layout>(hash)) return AddOutcome::kPresent;
        if (!rotate_by_items()) return AddOutcome::kCannotGrow;
      }
      if (refreshes()) return add_or_refresh<Layout>(hash);
    }
    const std::span<const Layer> all = filter_.layers();
    if (all.back().bits().size_bytes() >= kCachedBytes) all.back().prefetch<Layout>(hash);
    if (check_layers<Layout>(all.first(all.size() - 1), hash)) return AddOutcome::kPresent;
    return add_to_last<Layout>(hash);
  }

  template <class Layout>
  AddOutcome replay(ItemHash hash) {
    if (filter_.window() != nullptr && generation_room() == 0 && !rotate_by_items()) {
      return AddOutcome::kCannotGrow;
    }
    Layer& last = filter_.layers().back();
    if (!last.is_full() && last.insert_new<Layout>(hash)) return AddOutcome::kAdded;
    return insert_in_new_layer<Layout>(hash);
  }

  // Adds at most kGroupItems. Returns the number of items processed.
  template <class Layout>
  size_t add_some(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes) {
    hashes = hashes.first(std::min(kGroupItems, hashes.size()));
    if (filter_.window() == nullptr) return add_group<Layout>(hashes, outcomes);
    const uint64_t room = generation_room();
    // A group must end before the next rotation, which drops layers.
    if (room > 0) hashes = hashes.first(std::min<uint64_t>(hashes.size(), room));
    if (room > 0 && !refreshes()) return add_group<Layout>(hashes, outcomes);
    for (const ItemHash& hash : hashes) filter_.prefetch(hash);
    for (size_t i = 0; i < hashes.size(); ++i) {
      outcomes[i] = add<Layout>(hashes[i]);
      if (outcomes[i] == AddOutcome::kFull) return i + 1;
    }
    return hashes.size();
  }

 private:
  bool refreshes() const { return filter_.window()->settings().refreshes; }

  // Number of items that the newest generation of a window of items still accepts.
  uint64_t generation_room() const {
    const Window& window = *filter_.window();
    if (!window.settings().counts_items()) return std::numeric_limits<uint64_t>::max();
    const uint64_t count = filter_.generation_item_count(window.generations().size() - 1);
    const uint64_t quota = window.newest_quota();
    return quota - std::min(count, quota);
  }

  // Starts the next generation of a window of items. Returns false if the allocation fails.
  bool rotate_by_items() {
    const Window& window = *filter_.window();
    const uint64_t next = window.newest().ordinal + 1;
    return filter_.rotate({next, window.start_of(next)});
  }

  // True if an add changes nothing: the layers that an add checks contain the item.
  template <class Layout>
  bool is_add_without_effect(ItemHash hash) const {
    const std::span<const Layer> all = filter_.layers();
    const size_t older = all.size() - filter_.window()->generations().back().layer_count;
    return check_layers<Layout>(refreshes() ? all.subspan(older) : all, hash);
  }

  template <class Layout>
  AddOutcome insert_in_new_layer(ItemHash hash) {
    if (!filter_.is_scaling()) return AddOutcome::kFull;
    if (!filter_.grow(budget_)) return AddOutcome::kCannotGrow;
    [[maybe_unused]] const bool has_room = filter_.layers().back().insert_new<Layout>(hash);
    assert(has_room);
    return AddOutcome::kAdded;
  }

  // Adds an item that no other layer contains. If the window refreshes, older generations may
  // contain the item.
  template <class Layout>
  AddOutcome add_to_last(ItemHash hash) {
    Layer& last = filter_.layers().back();
    if (!last.is_full()) {
      // insert() reports whether the item was present, which saves a check of this layer.
      const Insertion insertion = last.insert<Layout>(hash);
      if (insertion != Insertion::kNoRoom) {
        return insertion == Insertion::kAdded ? AddOutcome::kAdded : AddOutcome::kPresent;
      }
    } else if (last.check<Layout>(hash)) {
      return AddOutcome::kPresent;
    }
    return insert_in_new_layer<Layout>(hash);
  }

  template <class Layout>
  AddOutcome add_or_refresh(ItemHash hash) {
    const std::span<const Layer> all = filter_.layers();
    const size_t older = all.size() - filter_.window()->generations().back().layer_count;
    if (check_layers<Layout>(all.subspan(older), hash)) return AddOutcome::kPresent;
    const bool is_older = check_layers<Layout>(all.first(older), hash);
    const AddOutcome outcome = add_to_last<Layout>(hash);
    if (!is_older) return outcome;
    // If the newest generation has no room, the item is still present in an older generation.
    return outcome == AddOutcome::kAdded ? AddOutcome::kRefreshed : AddOutcome::kPresent;
  }

  template <class Layout>
  size_t add_group(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes) {
    std::array<bool, kGroupItems> found;
    size_t done = 0;
    while (done < hashes.size()) {
      const std::span<const Layer> all = filter_.layers();
      const size_t layers_before = all.size();
      const auto rest = hashes.subspan(done);
      for (const ItemHash& hash : rest) all.back().prefetch<Layout>(hash);
      const auto found_of_rest = std::span(found).subspan(done, rest.size());
      std::ranges::fill(found_of_rest, false);
      check_layers_group<Layout>(all.first(layers_before - 1), rest, found_of_rest);
      // The loop ends after growth: the remaining items must then be looked up in the layer that
      // was last before.
      for (; done < hashes.size() && filter_.layer_count() == layers_before; ++done) {
        outcomes[done] = found[done] ? AddOutcome::kPresent : add_to_last<Layout>(hashes[done]);
        if (outcomes[done] == AddOutcome::kFull) return done + 1;
      }
    }
    return done;
  }

  ScalableFilter& filter_;
  const MemoryBudget& budget_;
};

AddOutcome ScalableFilter::add(std::string_view item, const MemoryBudget& budget) {
  return add(hasher()(item), budget);
}

AddOutcome ScalableFilter::add(ItemHash hash, const MemoryBudget& budget) {
  return with_layout(layout(),
                     [&]<class Layout>() { return Adder(*this, budget).add<Layout>(hash); });
}

AddOutcome ScalableFilter::replay_add(ItemHash hash, const MemoryBudget& budget) {
  return with_layout(layout(),
                     [&]<class Layout>() { return Adder(*this, budget).replay<Layout>(hash); });
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
  // assemble() sets the same capacity, so the filter and its reloaded copy grow alike.
  chain_->parameters.capacity = chain_->layers.front().capacity();
}

Removal ScalableFilter::remove(ItemHash hash) {
  return with_layout(layout(), [&]<class Layout>() {
    if constexpr (DeletableLayout<Layout>) {
      const std::span<Layer> all = layers();
      for (size_t i = 0; i < all.size(); ++i) {
        const Removal removal = all[i].remove<Layout>(hash);
        if (removal == Removal::kAbsent) continue;
        // An emptied layer other than the last never accepts items again, so it is dropped. No
        // layer exceeds the error rate of the earlier position to which it moves.
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
      // The result is that of one remove() per item. A layer sees the same items in the same order,
      // but no items after the removal that empties it. The last layer is never dropped.
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
  return with_layout(layout(),
                     [&]<class Layout>() { return check_layers<Layout>(layers_at(now_ms), hash); });
}

void ScalableFilter::prefetch(ItemHash hash, uint64_t bytes_min) const {
  with_layout(layout(), [&]<class Layout>() {
    for (const Layer& layer : layers()) {
      if (layer.bits().size_bytes() >= bytes_min) layer.prefetch<Layout>(hash);
    }
  });
}

size_t ScalableFilter::add_many(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                                const MemoryBudget& budget) {
  assert(outcomes.size() >= hashes.size());
  return with_layout(layout(), [&]<class Layout>() {
    Adder adder(*this, budget);
    for (size_t start = 0; start < hashes.size();) {
      start += adder.add_some<Layout>(hashes.subspan(start), outcomes.subspan(start));
      if (outcomes[start - 1] == AddOutcome::kFull) return start;
    }
    return hashes.size();
  });
}

size_t ScalableFilter::add_many(std::span<const std::string_view> items,
                                std::span<AddOutcome> outcomes, const MemoryBudget& budget) {
  const ItemHasher hash = hasher();
  std::array<ItemHash, kGroupItems> hashes;
  for (size_t start = 0; start < items.size(); start += kGroupItems) {
    const size_t count = std::min(kGroupItems, items.size() - start);
    for (size_t i = 0; i < count; ++i) hashes[i] = hash(items[start + i]);
    const size_t done = add_many(std::span(hashes).first(count), outcomes.subspan(start), budget);
    if (outcomes[start + done - 1] == AddOutcome::kFull) return start + done;
  }
  return items.size();
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

void ScalableFilter::may_contain_many(std::span<const std::string_view> items,
                                      std::span<bool> found, int64_t now_ms) const {
  const ItemHasher hash = hasher();
  std::array<ItemHash, kGroupItems> hashes;
  for (size_t start = 0; start < items.size(); start += kGroupItems) {
    const size_t count = std::min(kGroupItems, items.size() - start);
    for (size_t i = 0; i < count; ++i) hashes[i] = hash(items[start + i]);
    may_contain_many(std::span<const ItemHash>(hashes).first(count), found.subspan(start, count),
                     now_ms);
  }
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
