// SPDX-License-Identifier: MIT
#include "core/glob.h"

#include <cstddef>
#include <optional>
#include <utility>

namespace core {
namespace {

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

class Matcher {
 public:
  Matcher(std::string_view pattern, LetterCase letter_case)
      : pattern_(pattern), ignores_case_(letter_case == LetterCase::kIgnored) {}

  bool matches(std::string_view text);

 private:
  bool is_at_end() const { return at_ == pattern_.size(); }
  bool is_at(char c) const { return at_ < pattern_.size() && pattern_[at_] == c; }
  char fold(char c) const { return ignores_case_ ? to_lower(c) : c; }
  bool skip_stars();
  bool take_element(char c);
  bool take_set(char c);
  bool take_member(char c);
  bool is_in_range(char c, char first, char last) const;

  std::string_view pattern_;
  bool ignores_case_;
  size_t at_ = 0;
};

bool Matcher::skip_stars() {
  const size_t start = at_;
  while (is_at('*')) ++at_;
  return at_ != start;
}

// Reversed bounds are put in order before their case is folded, and bytes compare as signed
// characters: both show in what Redis matches.
bool Matcher::is_in_range(char c, char first, char last) const {
  using Signed = signed char;
  if (static_cast<Signed>(first) > static_cast<Signed>(last)) std::swap(first, last);
  const auto folded = static_cast<Signed>(fold(c));
  return folded >= static_cast<Signed>(fold(first)) && folded <= static_cast<Signed>(fold(last));
}

// Moves past one member of a set: an escaped character (never folded), a range, or a character.
bool Matcher::take_member(char c) {
  const size_t left = pattern_.size() - at_;
  const char* member = pattern_.data() + at_;
  if (left >= 2 && member[0] == '\\') {
    at_ += 2;
    return member[1] == c;
  }
  if (left >= 3 && member[1] == '-') {
    at_ += 3;
    return is_in_range(c, member[0], member[2]);
  }
  ++at_;
  return fold(member[0]) == fold(c);
}

// Moves past a whole set, whatever `c` is. One that is never closed ends with the pattern.
bool Matcher::take_set(char c) {
  ++at_;
  const bool is_negated = is_at('^');
  if (is_negated) ++at_;
  bool is_member = false;
  while (!is_at_end() && !is_at(']')) is_member |= take_member(c);
  if (!is_at_end()) ++at_;
  return is_member != is_negated;
}

// Moves past one element other than a star and tells whether it takes `c`. How far it moves does
// not depend on `c`. REQUIRES: not at the end.
bool Matcher::take_element(char c) {
  const char element = pattern_[at_];
  if (element == '[') return take_set(c);
  if (element == '?') {
    ++at_;
    return true;
  }
  // A backslash that ends the pattern stands for itself.
  if (element == '\\' && at_ + 1 < pattern_.size()) ++at_;
  return fold(pattern_[at_++]) == fold(c);
}

// Every element but the star takes exactly one character, so the leftmost place for what stands
// between two stars is as good as any: only the latest star ever has to be tried again.
bool Matcher::matches(std::string_view text) {
  if (text.empty()) return pattern_.empty();
  struct Retry {
    size_t pattern_at;
    size_t text_at;
  };
  std::optional<Retry> retry;
  size_t text_at = 0;
  while (text_at < text.size()) {
    if (skip_stars()) {
      if (is_at_end()) return true;
      // "*?" is "?*": taken once here, the '?'s are not walked again on every retry.
      while (is_at('?') && text_at < text.size()) ++at_, ++text_at;
      if (is_at_end()) return true;
      if (is_at('*') || text_at == text.size()) continue;
      retry = Retry{at_, text_at};
    }
    if (!is_at_end() && take_element(text[text_at])) {
      ++text_at;
      continue;
    }
    if (!retry) return false;
    at_ = retry->pattern_at;
    text_at = ++retry->text_at;
  }
  skip_stars();
  return is_at_end();
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text, LetterCase letter_case) {
  return Matcher(pattern, letter_case).matches(text);
}

}  // namespace core
