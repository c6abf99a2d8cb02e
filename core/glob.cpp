// SPDX-License-Identifier: MIT
#include "core/glob.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/short_bytes.h"

namespace core {
namespace {

using ByteSet = std::array<uint64_t, 4>;

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool has(const ByteSet& set, char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (set[byte / 64] >> (byte % 64) & 1) != 0;
}

void insert(ByteSet& set, char c) {
  const auto byte = static_cast<unsigned char>(c);
  set[byte / 64] |= uint64_t{1} << (byte % 64);
}

// Returns the bits of a word that lie below `end`. `begin` is the index of the word's first bit.
uint64_t bits_below(unsigned end, unsigned begin) {
  if (end <= begin) return 0;
  return end - begin >= 64 ? ~uint64_t{0} : (uint64_t{1} << (end - begin)) - 1;
}

// REQUIRES: first <= last, as unsigned bytes.
void insert_bytes(ByteSet& set, unsigned first, unsigned last) {
  for (unsigned word = 0; word < set.size(); ++word) {
    set[word] |= bits_below(last + 1, word * 64) & ~bits_below(first, word * 64);
  }
}

// Compares bytes as signed characters, like Redis, so that a range matches the same bytes as in
// Redis.
void insert_range(ByteSet& set, char first, char last) {
  const auto low = static_cast<signed char>(first);
  const auto high = static_cast<signed char>(last);
  if (low > high) return;
  const auto byte = [](signed char c) { return static_cast<unsigned>(static_cast<uint8_t>(c)); };
  if (low < 0 && high >= 0) {
    insert_bytes(set, byte(low), 255);
    insert_bytes(set, 0, byte(high));
  } else {
    insert_bytes(set, byte(low), byte(high));
  }
}

}  // namespace

class GlobCompiler {
 public:
  GlobCompiler(Glob& glob, std::string_view pattern) : glob_(glob), pattern_(pattern) {}

  void compile();

 private:
  bool is_at_end() const { return at_ == pattern_.size(); }
  bool is_at(char c) const { return at_ < pattern_.size() && pattern_[at_] == c; }
  char fold(char c) const { return glob_.ignores_case_ ? to_lower(c) : c; }
  Glob::Element take_element();
  Glob::Element take_set();
  void take_member(ByteSet& exact, ByteSet& folded);
  void add(Glob::Element element);
  void end_run(bool is_last);

  Glob& glob_;
  std::string_view pattern_;
  size_t at_ = 0;
  size_t run_begin_ = 0;  // index in elements_ of the current run's first element
  uint32_t gap_ = 0;      // number of arbitrary characters before the current run
};

// Consumes one member of a set: an escaped character (never folded), a range, or a character. The
// bounds of a range are put in order before their case is folded.
void GlobCompiler::take_member(ByteSet& exact, ByteSet& folded) {
  const size_t left = pattern_.size() - at_;
  const char* member = pattern_.data() + at_;
  if (left >= 2 && member[0] == '\\') {
    at_ += 2;
    return insert(exact, member[1]);
  }
  if (left >= 3 && member[1] == '-') {
    at_ += 3;
    char first = member[0];
    char last = member[2];
    if (static_cast<signed char>(first) > static_cast<signed char>(last)) std::swap(first, last);
    return insert_range(folded, fold(first), fold(last));
  }
  ++at_;
  insert(folded, fold(member[0]));
}

// Consumes a whole set. A set without a closing ']' extends to the end of the pattern.
Glob::Element GlobCompiler::take_set() {
  ++at_;
  const bool is_negated = is_at('^');
  if (is_negated) ++at_;
  ByteSet exact{};
  ByteSet folded{};
  while (!is_at_end() && !is_at(']')) take_member(exact, folded);
  if (!is_at_end()) ++at_;
  if (glob_.ignores_case_) {
    // Folds upper-case letters, because the text is folded to lower case before the lookup.
    ByteSet unfolded = folded;
    insert_range(unfolded, 'A', 'Z');
    for (char c = 'A'; c <= 'Z'; ++c) {
      if (has(folded, to_lower(c))) continue;
      const auto byte = static_cast<unsigned char>(c);
      unfolded[byte / 64] &= ~(uint64_t{1} << (byte % 64));
    }
    folded = unfolded;
  }
  for (size_t word = 0; word < exact.size(); ++word) {
    exact[word] |= folded[word];
    if (is_negated) exact[word] = ~exact[word];
  }
  if (std::ranges::all_of(exact, [](uint64_t word) { return word == 0; })) {
    glob_.is_impossible_ = true;
  }
  if (std::ranges::all_of(exact, [](uint64_t word) { return word == ~uint64_t{0}; })) {
    return Glob::kAny;
  }
  glob_.sets_.push_back(exact);
  return static_cast<Glob::Element>(Glob::kFirstSet + glob_.sets_.size() - 1);
}

// Consumes one element of the pattern. REQUIRES: the position is neither at the end of the pattern
// nor at a star.
Glob::Element GlobCompiler::take_element() {
  if (is_at('[')) return take_set();
  if (is_at('?')) {
    ++at_;
    return Glob::kAny;
  }
  // A backslash at the end of the pattern matches itself.
  if (is_at('\\') && at_ + 1 < pattern_.size()) ++at_;
  return static_cast<unsigned char>(fold(pattern_[at_++]));
}

void GlobCompiler::add(Glob::Element element) {
  ++glob_.size_min_;
  const bool is_first = glob_.elements_.size() == run_begin_;
  if (element == Glob::kAny && is_first && glob_.has_star_) {
    ++gap_;
  } else {
    glob_.elements_.push_back(element);
  }
}

// Ends the present run of elements, which began after the last star or at the start of the pattern.
// `is_last` means that no star follows the run.
void GlobCompiler::end_run(bool is_last) {
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

void GlobCompiler::compile() {
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
    return element == static_cast<unsigned char>(ignores_case_ ? to_lower(c) : c);
  }
  return element == kAny || has(sets_[element - kFirstSet], c);
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

bool glob_matches(std::string_view pattern, std::string_view text, LetterCase letter_case) {
  return Glob(pattern, letter_case).matches(text);
}

}  // namespace core
