// SPDX-License-Identifier: MIT
#include "core/bloom/layouts.h"

namespace core::bloom {
namespace {

constexpr bool are_rows_sound() {
  constexpr auto kLargestId = LayoutId{kLayoutIdsMax - 1};
  for (size_t i = 0; i < kLayoutRows.size(); ++i) {
    const LayoutRow& row = kLayoutRows[i];
    if (row.id == LayoutId{} || row.id > kLargestId || row.name.empty()) return false;
    for (size_t j = 0; j < i; ++j) {
      if (kLayoutRows[j].id == row.id || kLayoutRows[j].name == row.name) return false;
    }
  }
  return true;
}
static_assert(are_rows_sound(), "each layout has an id and a name of its own");

constexpr std::array<const LayoutRow*, kLayoutIdsMax> rows_by_id() {
  std::array<const LayoutRow*, kLayoutIdsMax> rows{};
  for (const LayoutRow& row : kLayoutRows) rows[static_cast<size_t>(row.id)] = &row;
  return rows;
}

// Returns function.template operator()<Layout>() for a layout with deletion, nullopt for any other.
template <class Value, class Function>
std::optional<Value> with_deletable(LayoutId layout, Function&& function) {
  return with_layout(layout, [&]<class Layout>() -> std::optional<Value> {
    if constexpr (DeletableLayout<Layout>) return function.template operator()<Layout>();
    return std::nullopt;
  });
}

}  // namespace

constinit const std::array<const LayoutRow*, kLayoutIdsMax> kLayoutRowsById = rows_by_id();

std::span<const LayoutRow> layout_rows() {
  return kLayoutRows;
}

std::string layout_names(std::string_view separator, std::string_view last_separator) {
  std::string names;
  for (const LayoutRow& row : kLayoutRows) {
    const bool is_first = &row == &kLayoutRows.front();
    const bool is_last = &row == &kLayoutRows.back();
    if (!is_first) names += is_last ? last_separator : separator;
    names += row.name;
  }
  return names;
}

std::optional<ArrayFigures> array_figures(LayoutId layout, const ArrayView& array,
                                          uint64_t item_count) {
  return with_deletable<ArrayFigures>(layout, [&]<class Layout>() -> ArrayFigures {
    const auto& [words, geometry] = array;
    return {Layout::fill_now(words, geometry, item_count),
            Layout::items_now(words, geometry, item_count),
            Layout::error_now(words, geometry, item_count),
            Layout::flag_share_now(words, geometry)};
  });
}

double residue_of(LayoutId layout, const Geometry& geometry, double flag_share) {
  const auto residue = with_deletable<double>(
      layout, [&]<class Layout>() { return Layout::residue_of(geometry, flag_share); });
  return residue.value_or(0);
}

std::optional<double> array_fill_ratio(LayoutId layout, const ArrayView& array,
                                       uint64_t item_count) {
  return with_deletable<double>(layout, [&]<class Layout>() {
    return Layout::fill_now(array.words, array.geometry, item_count);
  });
}

std::optional<double> predicted_residue(LayoutId layout, const Geometry& geometry,
                                        double item_count) {
  return with_deletable<double>(
      layout, [&]<class Layout>() { return Layout::predicted_residue(geometry, item_count); });
}

}  // namespace core::bloom
