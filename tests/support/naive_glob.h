// SPDX-License-Identifier: MIT
//
// A naive model of core::Glob: Redis' recursive matcher, which tries every length of text for each
// star. Its time is exponential in the number of stars.
#pragma once

#include <string_view>
#include <utility>

namespace support {

inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c;
}

// Matches the character `c` with the bracket expression at the start of `pattern`. Removes the
// expression from `pattern`.
inline bool naive_set(std::string_view& pattern, char c, bool ignores_case) {
  const auto fold = [&](char one) { return ignores_case ? lower(one) : one; };
  pattern.remove_prefix(1);
  const bool is_negated = pattern.starts_with('^');
  if (is_negated) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern[0] != ']') {
    if (pattern[0] == '\\' && pattern.size() >= 2) {
      found |= pattern[1] == c;
      pattern.remove_prefix(2);
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      // As in Redis on x86, bytes compare as signed characters, also where char is unsigned.
      auto low = static_cast<signed char>(pattern[0]);
      auto high = static_cast<signed char>(pattern[2]);
      if (low > high) std::swap(low, high);
      const auto folded = [&](char one) { return static_cast<signed char>(fold(one)); };
      found |= folded(c) >= folded(static_cast<char>(low)) &&
               folded(c) <= folded(static_cast<char>(high));
      pattern.remove_prefix(3);
    } else {
      found |= fold(pattern[0]) == fold(c);
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return found != is_negated;
}

inline bool naive_matches(std::string_view pattern, std::string_view text, bool ignores_case) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return naive_matches(pattern.substr(1), text, ignores_case) ||
           (!text.empty() && naive_matches(pattern, text.substr(1), ignores_case));
  }
  if (text.empty()) return false;
  if (pattern[0] == '[') {
    if (!naive_set(pattern, text[0], ignores_case)) return false;
    return naive_matches(pattern, text.substr(1), ignores_case);
  }
  const bool is_escape = pattern[0] == '\\' && pattern.size() >= 2;
  if (is_escape) pattern.remove_prefix(1);
  const bool is_same = ignores_case ? lower(pattern[0]) == lower(text[0]) : pattern[0] == text[0];
  if (!is_same && (is_escape || pattern[0] != '?')) return false;
  return naive_matches(pattern.substr(1), text.substr(1), ignores_case);
}

}  // namespace support
