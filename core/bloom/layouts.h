// SPDX-License-Identifier: MIT
//
// The list of layouts, and the one way from a LayoutId to the code of its layout.
//
// A new layout is a file of its own with what LayoutPolicy asks for, a line in Layouts, and a row
// in persistence/filters/layout_codec.cpp. Hashing, planning, the choices of `bf-layout`, the words
// behind LAYOUT and the tests that run for every layout follow from the list.
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
#include "core/bloom/native_layout.h"
#include "core/bloom/parameters.h"
#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/region_layout.h"
#include "core/bloom/valkeybloom_layout.h"

namespace core::bloom {

// What a layout has. `count` is of items, layers or bytes; `rate` is an error rate.
template <class Layout>
concept AnyLayout = requires(const FilterParameters& parameters, const Geometry& geometry,
                             const HashSettings& settings, std::string_view item, ItemHash hash,
                             uint64_t* words, uint64_t count, uint32_t index, double rate,
                             std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                             std::span<bool> found) {
  { Layout::kRow } -> std::convertible_to<LayoutRow>;
  { Layout::hash(item, settings) } -> std::same_as<ItemHash>;
  // A layer of `count` items; nothing when no array of an addressable size keeps the rate.
  { Layout::plan(parameters, count, rate) } -> std::same_as<std::optional<LayerPlan>>;
  // The rate of layer `index` of a growing filter, and the same where the last layer has `rate`.
  { Layout::layer_error_rate(parameters, index) } -> std::same_as<double>;
  { Layout::next_error_rate(parameters, index, rate) } -> std::same_as<double>;
  // Whether some layer can have this shape.
  { Layout::is_valid(geometry) } -> std::same_as<bool>;
  { Layout::predicted_error(geometry, count) } -> std::same_as<double>;
  // What a filter of `count` layers over `count` bytes of arrays is charged.
  { Layout::accounted_bytes(count, count) } -> std::same_as<uint64_t>;
  Layout::prefetch(words, geometry, hash);
  { Layout::check(words, geometry, hash) } -> std::same_as<bool>;
  Layout::check_group(arrays, hashes, found);
};

template <class Layout>
concept AddOnlyLayout = !Layout::kRow.clears_bits &&
                        requires(uint64_t * words, const Geometry& geometry, ItemHash hash) {
  // True when some bit was clear before.
  { Layout::mark(words, geometry, hash) } -> std::same_as<bool>;
};

// What a layout has whose items can be deleted, in place of mark(). Its contract: each removal may
// undo one insertion that answered kAdded. An item that was added so and not removed is never lost.
// Removing an item that was never added may take another's place; that is the caller's fault, and
// nobody else can notice it.
//
// Everything is deterministic: the same calls leave the same bytes. An insertion without room
// leaves the array byte for byte as it was; so does a removal that answers kAbsent or kStays. An
// array of zeros has room for an item. `capacity` is the layer's.
template <class Layout>
concept DeletableLayout = Layout::kRow.clears_bits&& requires(uint64_t* words,
                                                              const Geometry& geometry,
                                                              uint64_t capacity, ItemHash hash,
                                                              uint64_t count, double rate,
                                                              const BitArray& bits) {
  { Layout::insert(words, geometry, capacity, hash) } -> std::same_as<Insertion>;
  // Inserts without looking; false when there is no room.
  { Layout::insert_new(words, geometry, capacity, hash) } -> std::same_as<bool>;
  { Layout::remove(words, geometry, hash) } -> std::same_as<Removal>;
  // What the array itself says of its fill, of the items that so much is the work of, of the chance
  // that an absent item is found, and of the share of the items whose removal answers kStays.
  // `count` is the layer's item count.
  { Layout::fill_now(words, geometry, count) } -> std::same_as<double>;
  { Layout::items_now(words, geometry, count) } -> std::same_as<double>;
  { Layout::error_now(words, geometry, count) } -> std::same_as<double>;
  { Layout::residue_now(words, geometry, count) } -> std::same_as<double>;
  // That share after so many insertions and no removal.
  { Layout::predicted_residue(geometry, rate) } -> std::same_as<double>;
  // Whether the members above can have left the bits so. Touches no page that is untouched.
  { Layout::is_sound(bits, geometry, count) } -> std::same_as<bool>;
};

template <class Layout>
concept LayoutPolicy = AnyLayout<Layout> &&(AddOnlyLayout<Layout> || DeletableLayout<Layout>);

template <LayoutPolicy... Members>
struct LayoutList {
  static constexpr std::array kRows{Members::kRow...};

  // Template<A, B, C> of the members, for typed tests.
  template <template <class...> class Template>
  using As = Template<Members...>;
};

// One line each, in the order in which texts name them.
using Layouts = LayoutList<  //
    NativeLayout,            //
    RedisBloomLayout,        //
    ValkeyBloomLayout,       //
    FingerprintLayout,       //
    RegionLayout>;

inline constexpr auto& kLayoutRows = Layouts::kRows;

// Calls function.template operator()<Layout>() with the layout of this id.
// REQUIRES: an id of the list.
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

// Whether forked children may share the arrays: they then see bits that are set meanwhile.
inline ArraySharing array_sharing(LayoutId id) {
  return layout_row(id).clears_bits ? ArraySharing::kPrivate : ArraySharing::kShared;
}

}  // namespace core::bloom
