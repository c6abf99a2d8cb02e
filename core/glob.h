// SPDX-License-Identifier: MIT
//
// Redis' glob patterns, as KEYS, SCAN MATCH, PSUBSCRIBE and CONFIG GET use them: '*', '?', "[abc]",
// "[a-z]", "[^x]" and '\' before a character that is meant literally.
//
// A pattern is compiled once into the runs of elements between its stars. Every element takes one
// character, so the leftmost place for a run is as good as any, and the runs never look at the same
// part of a text twice. A run of plain characters is searched for in linear time.
//
// Invariants: compiling is linear in the pattern, without recursion. Matching takes at most
// pattern + text steps for patterns whose runs are plain; else at most kStepsPerByte steps for each
// byte of text, and kStepsFree more. A text that needs more than that does not match. Runs of up
// to kStepsPerByte elements and texts of up to 512 bytes never need more.
// Thread safety: constant once built.
// Source: odd cases measured on Redis 7.0.15.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace core {

enum class LetterCase : uint8_t { kExact, kIgnored };

class Glob {
 public:
  static constexpr size_t kStepsPerByte = 16;
  static constexpr size_t kStepsFree = size_t{1} << 16;

  // Up to six times the pattern's memory, twelve when it is all sets. One of 4 GiB or more matches
  // nothing.
  explicit Glob(std::string_view pattern, LetterCase letter_case = LetterCase::kExact);

  // Memory beyond the object's own.
  size_t memory_bytes() const {
    const size_t plain = plain_.capacity() == std::string().capacity() ? 0 : plain_.capacity() + 1;
    return plain + runs_.capacity() * sizeof(Run) + elements_.capacity() * sizeof(Element) +
           sets_.capacity() * sizeof(Set);
  }
  // True when the pattern describes the whole text. As in Redis an empty text matches only an
  // empty pattern, not even "*": commands for which "*" means everything look for it themselves.
  bool matches(std::string_view text) const;
  // The first eight bytes in the order of memory; zeros follow a shorter text.
  static uint64_t head_of(std::string_view text) {
    static_assert(std::endian::native == std::endian::little);
    const char* const from = text.data();
    const size_t size = text.size();
    if (size >= sizeof(uint64_t)) [[likely]] {
      uint64_t word = 0;
      std::memcpy(&word, from, sizeof word);
      return word;
    }
    if (size >= 4) return head_of_halves<uint32_t>(from, size);
    if (size >= 2) return head_of_halves<uint16_t>(from, size);
    return size == 0 ? 0 : static_cast<unsigned char>(*from);
  }
  // Nearly all patterns of ACL users are plain characters and a star, and they are looked at with
  // every command; so here is a first step without a call. Whether the pattern is of that kind and
  // its first eight characters match; `head` is head_of(text).
  bool is_prefix_with(std::string_view text, uint64_t head) const {
    return text.size() >= prefix_text_size_min_ && ((head ^ head_) & head_mask_) == 0;
  }
  // REQUIRES: is_prefix_with(). Whether the pattern matches.
  bool matches_behind_head(std::string_view text) const {
    return size_min_ <= sizeof head_ || matches(text);
  }

 private:
  friend class GlobCompiler;

  using Set = std::array<uint64_t, 4>;  // a bit for each byte
  // A byte, or kAny, or kFirstSet and the index of a set.
  using Element = uint32_t;
  static constexpr Element kAny = 256;
  static constexpr Element kFirstSet = 257;
  static constexpr size_t kNoPrefix = std::numeric_limits<size_t>::max();

  // What stands between two stars. Question marks at its ends need no search, they are a gap.
  struct Run {
    uint32_t gap = 0;  // characters of any kind that come before it
    uint32_t size : 31 = 0;
    uint32_t is_plain : 1 = 0;  // in plain_, else in elements_
  };
  // Where the elements of a run begin.
  struct Place {
    size_t plain = 0;
    size_t element = 0;
  };

  // Of two halves that may overlap.
  template <class Half>
  static uint64_t head_of_halves(const char* from, size_t size) {
    Half head = 0;
    Half tail = 0;
    std::memcpy(&head, from, sizeof(Half));
    std::memcpy(&tail, from + size - sizeof(Half), sizeof(Half));
    return uint64_t{head} | uint64_t{tail} << (8 * (size - sizeof(Half)));
  }
  bool takes(Element element, char c) const;
  bool matches_at(const Run& run, const Place& place, const char* text) const;
  const char* find(const Run& run, const Place& place, std::string_view text,
                   size_t& steps_left) const;

  bool ignores_case_ = false;
  bool is_impossible_ = false;  // some element takes no character
  bool has_star_ = false;
  size_t size_min_ = 0;  // of a text
  uint64_t head_ = 0;    // of a prefix: its first bytes, and which of them there are
  uint64_t head_mask_ = 0;
  size_t prefix_text_size_min_ = kNoPrefix;  // of a prefix: the least size of a text that matches
  std::vector<Run> runs_;  // the first one begins the text; behind a star the last one ends it
  std::string plain_;      // of all plain runs, one after the other
  std::vector<Element> elements_;
  std::vector<Set> sets_;
};

// For a pattern that is used once.
bool glob_matches(std::string_view pattern, std::string_view text,
                  LetterCase letter_case = LetterCase::kExact);

}  // namespace core
