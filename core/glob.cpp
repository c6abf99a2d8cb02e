// SPDX-License-Identifier: MIT
#include "core/glob.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/short_bytes.h"

namespace core {
namespace {

using ByteSet = std::bitset<256>;

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr unsigned byte_of(char c) {
  return static_cast<unsigned char>(c);
}

// REQUIRES: first <= last.
void insert_bytes(ByteSet& set, unsigned first, unsigned last) {
  set |= ~ByteSet() >> (255 - (last - first)) << first;
}

// Compares bytes as signed characters, like Redis, so that a range matches the same bytes as in
// Redis.
void insert_range(ByteSet& set, char first, char last) {
  const auto low = static_cast<signed char>(first);
  const auto high = static_cast<signed char>(last);
  if (low > high) return;
  if (low < 0 && high >= 0) {
    insert_bytes(set, byte_of(first), 255);
    insert_bytes(set, 0, byte_of(last));
  } else {
    insert_bytes(set, byte_of(first), byte_of(last));
  }
}

}  // namespace

class GlobCompiler {
 public:
  GlobCompiler(Glob& glob, std::string_view pattern) : glob_(glob), pattern_(pattern) {}

  void compile() {
    while (!is_at_end() && !glob_.is_impossible_) {
      if (!is_at('*')) {
        add(take_element());
        continue;
      }
      end_run(false);
      glob_.has_star_ = true;
      while (is_at('*')) ++at_;
    }
    end_run(true);
  }

 private:
  bool is_at_end() const { return at_ == pattern_.size(); }
  bool is_at(char c) const { return at_ < pattern_.size() && pattern_[at_] == c; }
  char fold(char c) const { return glob_.ignores_case_ ? to_lower(c) : c; }

  // Consumes one member of a set: an escaped character (never folded), a range, or a character. The
  // bounds of a range are put in order before their case is folded.
  void take_member(ByteSet& exact, ByteSet& folded) {
    const size_t left = pattern_.size() - at_;
    const char* member = pattern_.data() + at_;
    if (left >= 2 && member[0] == '\\') {
      exact.set(byte_of(member[1]));
      at_ += 2;
    } else if (left >= 3 && member[1] == '-') {
      char first = member[0];
      char last = member[2];
      if (static_cast<signed char>(first) > static_cast<signed char>(last)) std::swap(first, last);
      insert_range(folded, fold(first), fold(last));
      at_ += 3;
    } else {
      folded.set(byte_of(fold(member[0])));
      ++at_;
    }
  }

  // Consumes a whole set. A set without a closing ']' extends to the end of the pattern.
  Glob::Element take_set() {
    ++at_;
    const bool is_negated = is_at('^');
    if (is_negated) ++at_;
    ByteSet exact;
    ByteSet folded;
    while (!is_at_end() && !is_at(']')) take_member(exact, folded);
    if (!is_at_end()) ++at_;
    if (glob_.ignores_case_) {
      // An upper-case letter is a member if its lower-case letter is one, as if the text were
      // folded to lower case before the lookup.
      for (char c = 'A'; c <= 'Z'; ++c) folded[byte_of(c)] = folded[byte_of(to_lower(c))];
    }
    exact |= folded;
    if (is_negated) exact.flip();
    if (exact.none()) glob_.is_impossible_ = true;
    if (exact.all()) return Glob::kAny;
    glob_.sets_.push_back(exact);
    return static_cast<Glob::Element>(Glob::kFirstSet + glob_.sets_.size() - 1);
  }

  // Consumes one element of the pattern. REQUIRES: the position is neither at the end of the
  // pattern nor at a star.
  Glob::Element take_element() {
    if (is_at('[')) return take_set();
    if (is_at('?')) {
      ++at_;
      return Glob::kAny;
    }
    // A backslash at the end of the pattern matches itself.
    if (is_at('\\') && at_ + 1 < pattern_.size()) ++at_;
    return byte_of(fold(pattern_[at_++]));
  }

  void add(Glob::Element element) {
    ++glob_.size_min_;
    const bool is_first = glob_.elements_.size() == run_begin_;
    if (element == Glob::kAny && is_first && glob_.has_star_) {
      ++gap_;
    } else {
      glob_.elements_.push_back(element);
    }
  }

  // Ends the present run of elements, which began after the last star or at the start of the
  // pattern. `is_last` means that no star follows the run.
  void end_run(bool is_last) {
    auto& elements = glob_.elements_;
    Glob::Run run{.gap = gap_};
    gap_ = 0;
    while (!is_last && elements.size() > run_begin_ && elements.back() == Glob::kAny) {
      elements.pop_back();
      ++gap_;
    }
    const auto begin = elements.begin() + static_cast<std::ptrdiff_t>(run_begin_);
    run.size = static_cast<uint32_t>(elements.end() - begin) & 0x7fff'ffff;
    if (run.size == 0 && !is_last && glob_.has_star_) {
      gap_ += run.gap;
      return;
    }
    run.is_plain = static_cast<uint32_t>(
        !glob_.ignores_case_ &&
        std::all_of(begin, elements.end(), [](Glob::Element one) { return one < Glob::kAny; }));
    if (run.is_plain != 0) {
      for (auto one = begin; one != elements.end(); ++one) {
        glob_.plain_ += static_cast<char>(static_cast<unsigned char>(*one));
      }
      elements.erase(begin, elements.end());
    }
    run_begin_ = elements.size();
    glob_.runs_.push_back(run);
  }

  Glob& glob_;
  std::string_view pattern_;
  size_t at_ = 0;
  size_t run_begin_ = 0;  // index in elements_ of the current run's first element
  uint32_t gap_ = 0;      // number of arbitrary characters before the current run
};

Glob::Glob(std::string_view pattern, LetterCase letter_case)
    : ignores_case_(letter_case == LetterCase::kIgnored) {
  constexpr size_t kPatternBytesMax = std::numeric_limits<int32_t>::max();
  is_impossible_ = pattern.size() > kPatternBytesMax;
  if (!is_impossible_) GlobCompiler(*this, pattern).compile();
  if (is_impossible_) {
    runs_.clear();
    plain_.clear();
    elements_.clear();
    sets_.clear();
  }
  const auto has_gap = [](const Run& run) { return run.gap > 0; };
  const bool is_prefix = has_star_ && runs_.size() == 2 && std::ranges::none_of(runs_, has_gap) &&
                         runs_[0].is_plain != 0 && runs_[1].size == 0;
  if (is_prefix) {
    prefix_text_size_min_ = std::max<size_t>(size_min_, 1);
    head_ = head_of(plain_);
    head_mask_ = head_of(std::string(plain_.size(), '\xff'));
  }
  runs_.shrink_to_fit();
  plain_.shrink_to_fit();
  elements_.shrink_to_fit();
  sets_.shrink_to_fit();
}

bool Glob::takes(Element element, char c) const {
  if (element < kAny) {
    return element == byte_of(ignores_case_ ? to_lower(c) : c);
  }
  return element == kAny || sets_[element - kFirstSet][byte_of(c)];
}

// REQUIRES: `text` has at least run.size characters.
bool Glob::matches_at(const Run& run, const Place& place, const char* text) const {
  if (run.is_plain != 0) return std::memcmp(plain_.data() + place.plain, text, run.size) == 0;
  const Element* elements = elements_.data() + place.element;
  for (size_t i = 0; i < run.size; ++i) {
    if (!takes(elements[i], text[i])) return false;
  }
  return true;
}

// Returns the leftmost match of the run in the text. Returns nullptr if there is no match, or if
// the matching has used up its steps.
const char* Glob::find(const Run& run, const Place& place, std::string_view text,
                       size_t& steps_left) const {
  if (text.size() < run.size) return nullptr;
  if (run.is_plain != 0) {
    return static_cast<const char*>(
        ::memmem(text.data(), text.size(), plain_.data() + place.plain, run.size));
  }
  const Element* elements = elements_.data() + place.element;
  const char* const last = text.data() + text.size() - run.size;
  for (const char* at = text.data(); at <= last; ++at) {
    size_t taken = 0;
    while (taken < run.size && takes(elements[taken], at[taken])) ++taken;
    if (taken == run.size) return at;
    if (taken >= steps_left) return nullptr;
    steps_left -= taken + 1;
  }
  return nullptr;
}

bool Glob::matches(std::string_view text) const {
  if (is_impossible_ || text.size() < size_min_) return false;
  if (!has_star_) return text.size() == size_min_ && matches_at(runs_[0], {}, text.data());
  if (text.empty()) return false;
  if (prefix_text_size_min_ != kNoPrefix) return equal_bytes(plain_, text.substr(0, size_min_));
  const Run& tail = runs_.back();
  size_t steps_left = kStepsPerByte * text.size() + kStepsFree;
  const char* at = text.data();
  const char* const end = at + text.size() - tail.size;
  Place place;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    if (static_cast<size_t>(end - at) < run.gap) return false;
    at += run.gap;
    if (i + 1 == runs_.size()) return matches_at(run, place, end);
    if (i > 0) {
      at = find(run, place, {at, static_cast<size_t>(end - at)}, steps_left);
      if (at == nullptr) return false;
    } else if (!matches_at(run, place, at)) {
      return false;
    }
    at += run.size;
    (run.is_plain != 0 ? place.plain : place.element) += run.size;
  }
  return false;
}

}  // namespace core
