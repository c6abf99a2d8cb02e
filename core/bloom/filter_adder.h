// SPDX-License-Identifier: MIT
//
// ScalableFilter::Adder: adds items to a filter: single items, groups, and items that a journal
// recorded as new. Only scalable_filter.cpp includes this header.
//
// Thread safety: as for ScalableFilter.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <span>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"

namespace core::bloom {

// REQUIRES: the caller passes the filter's own layout as the template argument of all functions.
class ScalableFilter::Adder {
 public:
  Adder(ScalableFilter& filter, const MemoryBudget& budget) : filter_(filter), budget_(budget) {}

  template <class Layout>
  AddOutcome add(ItemHash hash) {
    if (filter_.window() != nullptr) {
      if (generation_room() == 0) {
        // An item that changes nothing must not start a generation. The journal omits such an item,
        // so a replay would not start that generation.
        if (is_add_without_effect<Layout>(hash)) return AddOutcome::kPresent;
        if (!rotate_by_items()) return AddOutcome::kCannotGrow;
      }
      if (refreshes()) return add_or_refresh<Layout>(hash);
    }
    const std::span<const Layer> all = filter_.layers();
    if (all.size() > 1) {
      if (all.back().bits().size_bytes() >= kCachedBytes) all.back().prefetch<Layout>(hash);
      if (check_layers<Layout>(all.first(all.size() - 1), hash)) return AddOutcome::kPresent;
    }
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

  // Replays at most kGroupItems items. Returns the number of items processed.
  template <class Layout>
  size_t replay_some(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes) {
    if constexpr (AddOnlyLayout<Layout>) {
      Layer& last = filter_.layers().back();
      uint64_t room = std::min<uint64_t>({hashes.size(), kGroupItems, last.room()});
      if (filter_.window() != nullptr) room = std::min(room, generation_room());
      if (room > 1) {
        std::array<bool, kGroupItems> unused;
        last.mark_new_group<Layout>(hashes.first(room), std::span(unused).first(room));
        std::ranges::fill(outcomes.first(room), AddOutcome::kAdded);
        return room;
      }
    }
    outcomes.front() = replay<Layout>(hashes.front());
    return 1;
  }

  // The result of a lookup of items, before the first of them is added.
  struct Known {
    std::span<const bool> found;  // one element per item; empty if there was no such lookup
    size_t layers = 0;            // number of layers that accepted no more items at the lookup

    Known subspan(size_t start) const {
      return {found.empty() ? found : found.subspan(start), layers};
    }
  };

  // Adds at most kGroupItems items. Returns the number of items processed.
  template <class Layout>
  size_t add_some(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                  const Known& known) {
    hashes = hashes.first(std::min(kGroupItems, hashes.size()));
    if (filter_.window() == nullptr) return add_group<Layout>(hashes, outcomes, known);
    const uint64_t room = generation_room();
    // A group of items must end before the window's next rotation, which drops layers.
    if (room > 0) hashes = hashes.first(std::min<uint64_t>(hashes.size(), room));
    if (room > 0 && !refreshes()) return add_group<Layout>(hashes, outcomes, {});
    filter_.prefetch(hashes);
    for (size_t i = 0; i < hashes.size(); ++i) {
      outcomes[i] = add<Layout>(hashes[i]);
      if (outcomes[i] == AddOutcome::kFull) return i + 1;
    }
    return hashes.size();
  }

 private:
  bool refreshes() const { return filter_.window()->settings().refreshes; }

  // Returns the number of items that the newest generation still accepts; the largest uint64_t
  // if the window's length is a time.
  uint64_t generation_room() const {
    const Window& window = *filter_.window();
    if (!window.settings().counts_items()) return std::numeric_limits<uint64_t>::max();
    const uint64_t count = filter_.generation_item_count(window.generations().size() - 1);
    const uint64_t quota = window.newest_quota();
    return quota - std::min(count, quota);
  }

  // Starts the next generation of a window that counts items. Returns false if memory is short. The
  // limits of one filter do not count, because creating or loading the window has checked all
  // generations.
  bool rotate_by_items() {
    const Window& window = *filter_.window();
    const uint64_t next = window.newest().ordinal + 1;
    return filter_.rotate({next, window.start_of(next)}, budget_.whole());
  }

  // Returns whether an add of the item would find it and so change nothing. An add checks all
  // layers, or only those of the newest generation if adds refresh items.
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

  // Adds an item that no earlier layer contains. Exception: if adds refresh items
  // (WindowSettings::refreshes), layers of older generations may contain the item.
  template <class Layout>
  AddOutcome add_to_last(ItemHash hash) {
    Layer& last = filter_.layers().back();
    if (!last.is_full()) {
      // insert() reports whether the item was present, so no separate check of the last layer is
      // needed.
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
    // An older generation contains the item, so the filter finds the item even if the newest
    // generation has no room for it. In that case the outcome is kPresent.
    return outcome == AddOutcome::kAdded ? AddOutcome::kRefreshed : AddOutcome::kPresent;
  }

  template <class Layout>
  size_t add_group(std::span<const ItemHash> hashes, std::span<AddOutcome> outcomes,
                   const Known& known) {
    // True for each item found in a layer that accepts no more items.
    std::array<bool, kGroupItems> is_old;
    std::ranges::fill(std::span(is_old).first(hashes.size()), false);
    // Number of layers, from the oldest on, in which all remaining items were already looked up.
    // These layers accept no more items, so growth does not require another lookup in them.
    size_t checked = 0;
    if (!known.found.empty()) {
      std::ranges::copy(known.found.first(hashes.size()), is_old.begin());
      checked = known.layers;
    }
    size_t done = 0;
    while (done < hashes.size()) {
      const std::span<const Layer> all = filter_.layers();
      const bool is_full = all.back().is_full();
      const size_t closed = is_full ? all.size() : all.size() - 1;
      const auto rest = hashes.subspan(done);
      const auto found = std::span(is_old).subspan(done, rest.size());
      check_layers_group<Layout>(all.subspan(checked, closed - checked), rest, found);
      checked = closed;
      done += is_full ? add_to_full<Layout>(rest, found, outcomes.subspan(done))
                      : add_to_open<Layout>(rest, found, outcomes.subspan(done));
      if (outcomes[done - 1] == AddOutcome::kFull) return done;
    }
    return done;
  }

  // Reports items as present up to the first item that was not found, and adds that item to a new
  // layer. Returns the number of items processed.
  template <class Layout>
  size_t add_to_full(std::span<const ItemHash> hashes, std::span<const bool> found,
                     std::span<AddOutcome> outcomes) {
    const auto first_new = std::ranges::find(found, false);
    const auto count = static_cast<size_t>(first_new - found.begin());
    std::ranges::fill(outcomes.first(count), AddOutcome::kPresent);
    if (first_new == found.end()) return count;
    outcomes[count] = insert_in_new_layer<Layout>(hashes[count]);
    return count + 1;
  }

  // Adds items to the last layer. Stops when that layer is full, or when an add has created a new
  // layer. Returns the number of items processed, at least one.
  template <class Layout>
  size_t add_to_open(std::span<const ItemHash> hashes, std::span<bool> found,
                     std::span<AddOutcome> outcomes) {
    Layer& last = filter_.layers().back();
    if constexpr (AddOnlyLayout<Layout>) {
      const size_t count = std::min<uint64_t>(hashes.size(), last.room());
      last.mark_group<Layout>(hashes.first(count), found.first(count));
      for (size_t i = 0; i < count; ++i) {
        outcomes[i] = found[i] ? AddOutcome::kPresent : AddOutcome::kAdded;
      }
      return count;
    } else {
      for (const ItemHash& hash : hashes) last.prefetch<Layout>(hash);
      const size_t layers_before = filter_.layer_count();
      size_t done = 0;
      while (done < hashes.size() && filter_.layer_count() == layers_before) {
        outcomes[done] = found[done] ? AddOutcome::kPresent : add_to_last<Layout>(hashes[done]);
        if (outcomes[done++] == AddOutcome::kFull) break;
      }
      return done;
    }
  }

  ScalableFilter& filter_;
  const MemoryBudget& budget_;
};

}  // namespace core::bloom
