// SPDX-License-Identifier: MIT
#include "server/base/config/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "server/base/config/option_table.h"

namespace server {
namespace {

// The maximum number of letters in which an unknown name may differ from the suggested name.
constexpr size_t kDistanceMax = 3;

// Returns the number of letters to insert, delete or replace until both texts are equal
// (Levenshtein, 1966), computed row by row.
size_t distance(std::string_view one, std::string_view other) {
  std::vector<size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < one.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < other.size(); ++j) {
      const size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Removes separators, because users confuse names such as `max_memory` and `maxmemory`.
std::string without_separators(std::string_view name) {
  std::string letters;
  std::ranges::copy_if(name, std::back_inserter(letters),
                       [](char c) { return c != '-' && c != '_' && c != '.'; });
  return letters;
}

// Returns the known directive that is most similar to the unknown name, or an empty text if none is
// similar enough. The shorter the unknown name, the fewer of its letters may differ from the known
// name.
std::string_view nearest_directive(std::string_view name) {
  const std::string letters = without_separators(name);
  std::string_view nearest;
  size_t least = std::string_view::npos;
  const auto consider = [&](std::string_view known) {
    const size_t here = distance(letters, without_separators(known));
    if (here >= least) return;
    least = here;
    nearest = known;
  };
  for (const Option& option : option_table()) {
    consider(option.name);
    std::ranges::for_each(option.aliases, consider);
  }
  for (const char* const other : {"include", "loadmodule", "rename-command", "user"}) {
    consider(other);
  }
  return least <= std::min(kDistanceMax, letters.size() / 3) ? nearest : std::string_view();
}

}  // namespace

std::string hint_for(std::string_view name) {
  if (name == "-p") return kPortHint;
  if (name.starts_with('-')) return kDashesHint;
  // Limit on the length of a name. A longer name is not compared with the directives, because the
  // comparison would take long and such a name is no misspelling.
  constexpr size_t kNameBytesMax = 100;
  const std::string_view meant = name.size() <= kNameBytesMax ? nearest_directive(name) : "";
  // If the name is known and only the number of values is wrong, nothing is suggested.
  return meant.empty() || meant == name ? "" : fmt::format("; did you mean '{}'?", meant);
}

}  // namespace server
