// SPDX-License-Identifier: MIT
//
// Which lines are an item's, and the loops over them that all line kernels share.
//
// Invariants: a Line type has `Line(bits_per_line)`, `all_set(words, positions)` and
// `set(words, positions)`; the loops are inlined into their callers, so that a caller compiled for
// an instruction set gets them compiled for it as well.
// Thread safety: as the kernels.
// Source: docs/bloom_math.md, "The native layout"; Lemire 2019, "Fast random integer generation in
// an interval"; Steele, Vigna 2021, "Computationally easy, spectrally good multipliers".
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <new>
#include <span>

#include "core/bloom/line_kernels.h"
#include "core/bloom/line_model.h"
#include "core/prefetch.h"

namespace core::bloom {

__extension__ using uint128_t = unsigned __int128;

// Walks the lines of one item: where each is, and which bits of it are the item's.
class LineWalk {
 public:
  LineWalk(ItemHash hash, const Geometry& geometry)
      : place_(hash.first), pattern_(hash.second), line_count_(geometry.bit_count / kLineBits) {}

  // Index of the current line's first word.
  uint64_t word_index() const {
    return static_cast<uint64_t>((uint128_t{place_} * line_count_) >> 64) * 8;
  }
  // Nine-bit positions, lowest first.
  uint64_t positions() const {
    uint64_t mixed = pattern_;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93;
    return mixed ^ (mixed >> 32);
  }
  void advance() {
    // The high half of a multiplicative generator picks lines; its low bits are never looked at.
    place_ *= 0xF1357AEA2E62A9C5;
    pattern_ += 0x9E3779B97F4A7C15;
  }

 private:
  uint64_t place_;
  uint64_t pattern_;
  uint64_t line_count_;
};

// Begins to fetch the lines that the walk has yet to visit, `count` of them.
[[gnu::always_inline]] inline void prefetch_lines(const uint64_t* words, LineWalk walk,
                                                  unsigned count) {
  for (; count > 0; --count, walk.advance()) core::prefetch(words + walk.word_index());
}

template <class Line>
[[gnu::always_inline]] inline bool check_lines(const uint64_t* words, LineWalk walk, unsigned count,
                                               const Line& line) {
  for (; count > 0; --count, walk.advance()) {
    if (!line.all_set(words + walk.word_index(), walk.positions())) return false;
  }
  return true;
}

template <class Line>
[[gnu::always_inline]] inline bool check_item(const uint64_t* words, const Geometry& geometry,
                                              ItemHash hash) {
  const unsigned lines = geometry.lines_per_lookup;
  const LineWalk walk(hash, geometry);
  // All misses at once: a present item needs every line, and waiting costs more than fetching.
  if (lines > 1) {
    LineWalk others = walk;
    others.advance();
    prefetch_lines(words, others, lines - 1);
  }
  return check_lines(words, walk, lines, Line(geometry.hash_count / lines));
}

template <class Line>
[[gnu::always_inline]] inline bool mark_item(uint64_t* words, const Geometry& geometry,
                                             ItemHash hash) {
  const unsigned lines = geometry.lines_per_lookup;
  const Line line(geometry.hash_count / lines);
  LineWalk walk(hash, geometry);
  bool has_changed = false;
  for (unsigned i = 0; i < lines; ++i, walk.advance()) {
    has_changed |= line.set(words + walk.word_index(), walk.positions());
  }
  return has_changed;
}

// Writes a Line::Pattern for the first line of every item.
template <class Line>
[[gnu::always_inline]] inline void prepare_items(std::span<const ItemHash> hashes,
                                                 LinePatterns& patterns) {
  using Pattern = typename Line::Pattern;
  static_assert(sizeof(Pattern) <= LinePatterns::kBytesPerItem);
  assert(hashes.size() <= kGroupItems);
  constexpr Geometry kAnyGeometry;
  for (size_t i = 0; i < hashes.size(); ++i) {
    new (patterns.bytes.data() + i * sizeof(Pattern))
        Pattern(LineWalk(hashes[i], kAnyGeometry).positions());
  }
}

// Two rounds of misses: the first line of every item, which nearly all absent items end at, then
// the other lines of those that are left.
template <class Line>
[[gnu::always_inline]] inline void check_items(const uint64_t* words, const Geometry& geometry,
                                               std::span<const ItemHash> hashes,
                                               const LinePatterns& patterns,
                                               std::span<bool> found) {
  using Pattern = typename Line::Pattern;
  const auto* const pattern_of = reinterpret_cast<const Pattern*>(patterns.bytes.data());
  assert(hashes.size() <= kGroupItems && found.size() >= hashes.size());
  const unsigned lines = geometry.lines_per_lookup;
  const Line line(geometry.hash_count / lines);
  // Arrays below this are likely in the core's own cache while their filter is in use: the older
  // layers of a filter that has grown. Fetching for them would cost as much as looking.
  constexpr uint64_t kCachedBytes = 256 << 10;
  const bool fetches = geometry.size_bytes() >= kCachedBytes;
  std::array<uint8_t, kGroupItems> open;
  size_t open_count = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    open[open_count] = static_cast<uint8_t>(i);
    open_count += !found[i];
    if (fetches && !found[i]) prefetch_lines(words, LineWalk(hashes[i], geometry), 1);
  }
  size_t left = 0;
  for (size_t i = 0; i < open_count; ++i) {
    const LineWalk walk(hashes[open[i]], geometry);
    // No branch on the answer, which nobody can guess.
    open[left] = open[i];
    left += line.all_set(words + walk.word_index(), pattern_of[open[i]]);
  }
  for (size_t i = 0; i < left && lines > 1 && fetches; ++i) {
    LineWalk walk(hashes[open[i]], geometry);
    walk.advance();
    prefetch_lines(words, walk, lines - 1);
  }
  for (size_t i = 0; i < left; ++i) {
    LineWalk walk(hashes[open[i]], geometry);
    walk.advance();
    found[open[i]] = check_lines(words, walk, lines - 1, line);
  }
}

}  // namespace core::bloom
