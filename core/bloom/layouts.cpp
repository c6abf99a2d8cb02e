// SPDX-License-Identifier: MIT
#include "core/bloom/layouts.h"

namespace core::bloom {
namespace {

constexpr bool are_rows_sound() {
  constexpr auto kLargestId = LayoutId{63};
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

}  // namespace

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

}  // namespace core::bloom
