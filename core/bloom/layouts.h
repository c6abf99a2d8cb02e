// SPDX-License-Identifier: MIT
//
// The list of layouts, and the dispatch from a LayoutId to the code of its layout.
//
// A new layout needs three things: a file that implements LayoutPolicy, a line in Layouts, and a
// row in persistence/filters/layout_codec.cpp. Hashing, planning, the values of `bf-layout`, the
// arguments of LAYOUT and the tests that run for every layout are derived from the list.
//
// Invariants: ids and names are unique; an id fits the six bits that a filter has for it.
// with_layout() compiles its function once for each layout, so probes are inlined.
// Thread safety: constants and pure functions.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/fingerprint_layout.h"
#include "core/bloom/hash.h"
#include "core/bloom/lane_layout.h"
#include "core/bloom/native_layout.h"
#include "core/bloom/parameters.h"
#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/region_layout.h"
#include "core/bloom/valkeybloom_layout.h"

namespace core::bloom {

// The members that every layout must have. `count` is a number of items. `rate` is an error rate. A
// foreign layout must also have accounted_bytes(), which returns the accounted memory of a filter.
// Its arguments are the number of layers and the bytes of all arrays. A layout may also have
// visit_bits(geometry, hash, visit), which calls visit(bit) for each bit of an item. BulkFilter
// then sets the bits with several threads.
template <class Layout>
concept AnyLayout = requires(const FilterParameters& parameters, const Geometry& geometry,
                             const HashSettings& settings, std::string_view item, ItemHash hash,
                             uint64_t* words, uint64_t count, uint32_t index, double rate,
                             std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                             std::span<bool> found) {
  { Layout::kRow } -> std::convertible_to<LayoutRow>;
  { Layout::hash(item, settings) } -> std::same_as<ItemHash>;
  // Plans a layer of `count` items; nullopt if no array of an addressable size keeps the rate.
  { Layout::plan(parameters, count, rate) } -> std::same_as<std::optional<LayerPlan>>;
  // The error rate of layer `index` of a growing filter. A layout may also have
  // next_error_rate(rate): the error rate of the layer after a layer with the error rate `rate`. It
  // then replaces layer_error_rate() when a filter grows.
  { Layout::layer_error_rate(parameters, index) } -> std::same_as<double>;
  // True if a layer of this layout can have this geometry.
  { Layout::is_valid(geometry) } -> std::same_as<bool>;
  { Layout::predicted_error(geometry, count) } -> std::same_as<double>;
  // A layout may also have prefetch_first(), with the same arguments, which prefetches only what a
  // lookup of an absent item usually touches. It may have check_any(layers, hash), which returns
  // whether some layer contains the item, and is faster than check() for each of them.
  Layout::prefetch(words, geometry, hash);
  { Layout::check(words, geometry, hash) } -> std::same_as<bool>;
  Layout::check_group(arrays, hashes, found);
};

template <class Layout>
concept AddOnlyLayout =
    !Layout::kRow.clears_bits && requires(uint64_t * words, const Geometry& geometry, ItemHash hash,
                                          std::span<const ItemHash> hashes, std::span<bool> found) {
  // Sets the item's bits. Returns true if at least one of them was clear before.
  { Layout::mark(words, geometry, hash) } -> std::same_as<bool>;
  // Adds the items in order, but skips each item i whose found[i] is already set. Sets the bits of
  // item i. If all these bits were already set, sets found[i]. Returns the number of items that
  // changed a bit.
  { Layout::mark_group(words, geometry, hashes, found) } -> std::same_as<uint64_t>;
};

// The members of a layout with deletion, which replace mark(). Contract: the caller removes an item
// at most once for each insertion that returned kAdded. Then an item whose insertion returned
// kAdded is found until it is removed. If the caller removes an item that was never added, another
// item may be removed instead. The layout cannot detect this error.
//
// All members are deterministic: the same calls give the same bytes. An insertion without room does
// not change the array. A removal that returns kAbsent or kStays does not change the array either.
// An array of zeros has room for an item. `capacity` is the capacity of the layer. A layout may
// also have remove_group(words, geometry, hashes, outcomes), which removes many items at once. It
// skips items whose outcome is not kAbsent, sets the outcome of a removed item to kGone, and
// returns the number of removed items.
template <class Layout>
concept DeletableLayout = Layout::kRow.clears_bits&& requires(
    uint64_t* words, const Geometry& geometry, uint64_t capacity, ItemHash hash, uint64_t count,
    double item_count, double flag_share, const BitArray& bits) {
  { Layout::insert(words, geometry, capacity, hash) } -> std::same_as<Insertion>;
  // Inserts without a check for presence. Returns false if there is no room.
  { Layout::insert_new(words, geometry, capacity, hash) } -> std::same_as<bool>;
  { Layout::remove(words, geometry, hash) } -> std::same_as<Removal>;
  // Statistics computed from the array: its fill ratio, the number of items that would give this
  // fill, and the error rate. `count` is the layer's item count. From flag_share_now(),
  // residue_of() estimates the share of items whose removal returns kStays.
  { Layout::fill_now(words, geometry, count) } -> std::same_as<double>;
  { Layout::items_now(words, geometry, count) } -> std::same_as<double>;
  { Layout::error_now(words, geometry, count) } -> std::same_as<double>;
  { Layout::flag_share_now(words, geometry) } -> std::same_as<double>;
  { Layout::residue_of(geometry, flag_share) } -> std::same_as<double>;
  // Predicted share of `item_count` items that cannot be removed (kStays), because their removal
  // would affect other items. The prediction assumes that nothing was removed before.
  { Layout::predicted_residue(geometry, item_count) } -> std::same_as<double>;
  // Returns whether a sequence of additions and removals can have produced the bits. With
  // Loaded::kPartly, also accepts such bits without some of their chunks. Does not read pages that
  // were never written.
  { Layout::is_sound(bits, geometry, count, Loaded::kWhole) } -> std::same_as<bool>;
};

template <class Layout>
concept LayoutPolicy = AnyLayout<Layout> &&(AddOnlyLayout<Layout> || DeletableLayout<Layout>);

template <LayoutPolicy... Members>
struct LayoutList {
  static constexpr std::array kRows{Members::kRow...};

  // Instantiates a template with all layouts, for typed tests.
  template <template <class...> class Template>
  using As = Template<Members...>;
};

// One line for each layout, in the order in which messages list the layouts.
using Layouts = LayoutList<  //
    NativeLayout,            //
    LaneLayout,              //
    RedisBloomLayout,        //
    ValkeyBloomLayout,       //
    FingerprintLayout,       //
    RegionLayout>;

inline constexpr auto& kLayoutRows = Layouts::kRows;

// Calls function.template operator()<Layout>() for the layout with this id. REQUIRES: the id is in
// the list.
template <class Function, LayoutPolicy First, LayoutPolicy... Others>
[[gnu::always_inline]] inline decltype(auto) with_layout_of(LayoutList<First, Others...> /*list*/,
                                                            LayoutId id, Function&& function) {
  if constexpr (sizeof...(Others) != 0) {
    if (id != First::kRow.id) return with_layout_of(LayoutList<Others...>(), id, function);
  }
  return function.template operator()<First>();
}

template <class Function>
[[gnu::always_inline]] inline decltype(auto) with_layout(LayoutId id, Function&& function) {
  return with_layout_of(Layouts(), id, function);
}

// Returns kPrivate for a layout that clears bits. Otherwise returns kShared: forked children share
// the arrays with their parent, and see bits that the parent sets after the fork.
inline ArraySharing array_sharing(LayoutId id) {
  return layout_row(id).clears_bits ? ArraySharing::kPrivate : ArraySharing::kShared;
}

}  // namespace core::bloom
