// SPDX-License-Identifier: MIT
//
// Builds rows of the option table. There is one function for each kind of option. `rest` contains
// the fields that only a few options set.
//
// Thread-safe: the functions keep no state.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/config/option.h"

namespace server::rows {

inline constexpr Mutability kImmutable = Mutability::kImmutable;
inline constexpr Mutability kProtected = Mutability::kProtected;
inline constexpr Mutability kWithHook = Mutability::kWithHook;

inline Option text(std::string_view name, Option rest = {}) {
  rest.name = name;
  return rest;
}

inline Option row(OptionKind kind, std::string_view name, std::string default_text, Option rest) {
  rest.kind = kind;
  rest.default_text = std::move(default_text);
  return text(name, std::move(rest));
}

inline Option flag(std::string_view name, std::string default_text, Option rest = {}) {
  return row(OptionKind::kBool, name, std::move(default_text), std::move(rest));
}

// Returns an option for a number from `min` to `max`.
inline Option integer(std::string_view name, std::string default_text, int64_t min, int64_t max,
                      Option rest = {}) {
  rest.min = min;
  rest.max = max;
  return row(OptionKind::kInteger, name, std::move(default_text), std::move(rest));
}

inline Option bytes(std::string_view name, std::string default_text, Option rest = {}) {
  return row(OptionKind::kMemory, name, std::move(default_text), std::move(rest));
}

inline Option choice(std::string_view name, std::string default_text,
                     std::vector<std::string_view> choices, Option rest = {}) {
  rest.choices = std::move(choices);
  return row(OptionKind::kEnum, name, std::move(default_text), std::move(rest));
}

// Returns an option for a list of words.
inline Option list(std::string_view name, Option rest = {}) {
  rest.kind = OptionKind::kList;
  rest.multi_argument = true;
  return text(name, std::move(rest));
}

// Joins the parts of a table of options that are accepted but have no effect here.
inline std::vector<Option> without_effect(std::initializer_list<std::vector<Option>> parts) {
  std::vector<Option> options;
  for (const auto& part : parts) options.insert(options.end(), part.begin(), part.end());
  for (Option& option : options) option.inert = true;
  return options;
}

}  // namespace server::rows
