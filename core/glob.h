// SPDX-License-Identifier: MIT
//
// Redis' glob patterns, as KEYS, SCAN MATCH, PSUBSCRIBE and CONFIG GET use them: '*', '?', "[abc]",
// "[a-z]", "[^x]" and '\' to escape a character.
//
// A pattern is compiled once into the runs of elements between its stars. Every element matches one
// character, so the leftmost match of a run always suffices. No two runs search the same part of
// the text. A run of plain characters is searched for in linear time.
//
// Invariants: compiling is linear in the pattern, without recursion. If all runs are plain,
// matching takes at most as many steps as pattern and text have bytes together. Otherwise matching
// takes at most kStepsPerByte steps for each byte of the text, plus kStepsFree. A text that needs
// more steps does not match. Runs of up to kStepsPerByte elements and texts of up to 512 bytes
// never need more steps.
// Thread safety: immutable after construction.
// Source: edge cases measured on Redis 7.0.15.
#pragma once

#include <bit>
#include <bitset>
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

  // The compiled pattern takes up to six times the memory of its text, or twelve times if it
  // consists of sets. A pattern of 2 GiB or more matches nothing.
  explicit Glob(std::string_view pattern, LetterCase letter_case = LetterCase::kExact);

  // Returns the bytes that the pattern has allocated. Does not count the Glob object itself.
  size_t memory_bytes() const {
    const size_t plain = plain_.capacity() == std::string().capacity() ? 0 : plain_.capacity() + 1;
    return plain + runs_.capacity() * sizeof(Run) + elements_.capacity() * sizeof(Element) +
           sets_.capacity() * sizeof(Set);
  }
  // True if the pattern matches the whole text. As in Redis, only an empty pattern matches an empty
  // text: "*" does not. Commands for which "*" means everything must check for it themselves.
  bool matches(std::string_view text) const;
  // Returns the first eight bytes of the text in memory order. A shorter text is padded with zeros.
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
  // True if the pattern is plain characters followed by a star, and its first eight characters
  // match. Nearly all patterns of ACL users have this form and every command checks them, so this
  // check is inlined. `head` is head_of(text).
  bool is_prefix_with(std::string_view text, uint64_t head) const {
    return text.size() >= prefix_text_size_min_ && ((head ^ head_) & head_mask_) == 0;
  }
  // True if the pattern matches the text. REQUIRES: is_prefix_with() has returned true for the
  // text.
  bool matches_behind_head(std::string_view text) const {
    return size_min_ <= sizeof head_ || matches(text);
  }

 private:
  friend class GlobCompiler;

  // A set of characters, as one bit per byte value.
  using Set = std::bitset<256>;
  // A byte, kAny, or kFirstSet plus the index of a set.
  using Element = uint32_t;
  static constexpr Element kAny = 256;
  static constexpr Element kFirstSet = 257;
  static constexpr size_t kNoPrefix = std::numeric_limits<size_t>::max();

  // The elements of a pattern between two stars. Question marks beside a star match any characters,
  // so they are not searched for but only counted (gap).
  struct Run {
    uint32_t gap = 0;  // number of arbitrary characters before the run
    uint32_t size : 31 = 0;
    uint32_t is_plain : 1 = 0;  // true: plain characters, in plain_; false: in elements_
  };
  // Position at which the elements of a run begin.
  struct Place {
    size_t plain = 0;
    size_t element = 0;
  };

  // Computes head_of() for a text whose size is from one to two times that of Half. Combines the
  // first and the last sizeof(Half) bytes of the text, which may overlap.
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
  bool is_impossible_ = false;  // true if some element matches no character
  bool has_star_ = false;
  size_t size_min_ = 0;  // minimum size of a matching text
  // For a prefix pattern: its first bytes (at most eight), and a mask that selects these bytes.
  uint64_t head_ = 0;
  uint64_t head_mask_ = 0;
  // Minimum size of a text that matches a prefix pattern; kNoPrefix for any other pattern.
  size_t prefix_text_size_min_ = kNoPrefix;
  // Stars divide the pattern into these runs. The beginning of the text must match the first run.
  // If the pattern has a star, the end of the text must match the last run.
  std::vector<Run> runs_;
  std::string plain_;  // the characters of all plain runs, concatenated
  std::vector<Element> elements_;
  std::vector<Set> sets_;
};

}  // namespace core
