// SPDX-License-Identifier: MIT
//
// LineWalk: computes the lines of an item. Also the loops over lines that all line kernels share.
//
// Invariants: a Line type has `Line(geometry)`, `all_set(words, positions)` and, if it sets bits,
// `set(words, positions)`. The loops are inlined, so that a caller compiled for an instruction set
// gets them compiled for it too.
// Thread safety: lookups may run in parallel; `set` needs exclusive access to the array.
// Source: docs/bloom_math.md, "The native layout"; Steele, Vigna 2021, "Computationally easy,
// spectrally good multipliers".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/bloom/line_kernels.h"
#include "core/bloom/models/line_model.h"
#include "core/fast_range.h"
#include "core/prefetch.h"

namespace core::bloom {

// Index of the first word of the line that the hash `place` selects.
inline uint64_t line_word_index(uint64_t place, uint64_t line_count) {
  return fast_range(place, line_count) * 8;
}

// Number of bits that an item has in each of its lines.
inline unsigned bits_per_line(const Geometry& geometry) {
  return geometry.hash_count / unsigned{geometry.lines_per_lookup};
}

// Iterates over the lines of one item: their word index and the item's bit positions in them.
class LineWalk {
 public:
  LineWalk(ItemHash hash, const Geometry& geometry)
      : place_(hash.first), pattern_(hash.second), line_count_(geometry.bit_count / kLineBits) {}

  // Index of the current line's first word.
  uint64_t word_index() const { return line_word_index(place_, line_count_); }
  // The item's bit positions in the line, nine bits each, lowest first.
  uint64_t positions() const {
    uint64_t mixed = pattern_;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93;
    return mixed ^ (mixed >> 32);
  }
  void advance() {
    // The high half of a multiplicative generator selects lines. Its low bits are never used.
    place_ *= 0xF1357AEA2E62A9C5;
    pattern_ += 0x9E3779B97F4A7C15;
  }

 private:
  uint64_t place_;
  uint64_t pattern_;
  uint64_t line_count_;
};

// Prefetches the next `count` lines of the walk.
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
  // Prefetches all lines at once. An item that is present needs every line, and waiting for each
  // line costs more than prefetching lines that turn out to be unnecessary.
  if (lines > 1) {
    LineWalk others = walk;
    others.advance();
    prefetch_lines(words, others, lines - 1);
  }
  return check_lines(words, walk, lines, Line(geometry));
}

template <class Line>
[[gnu::always_inline]] inline bool mark_item(uint64_t* words, const Geometry& geometry,
                                             ItemHash hash) {
  const unsigned lines = geometry.lines_per_lookup;
  const Line line(geometry);
  LineWalk walk(hash, geometry);
  bool has_changed = false;
  for (unsigned i = 0; i < lines; ++i, walk.advance()) {
    has_changed |= line.set(words + walk.word_index(), walk.positions());
  }
  return has_changed;
}

// Prefetch distance in lines. It suffices for the miss buffers of a core, which compares some lines
// while other lines are loaded. Prefetching all lines first would leave the core waiting.
inline constexpr size_t kLinesAhead = 40;

// Two rounds of cache misses. The first loads the first line of every item, where the lookup of
// nearly all absent items ends. The second loads the other lines of the remaining items.
template <class Line>
[[gnu::always_inline]] inline void check_in_array(const ArrayView& array,
                                                  std::span<const ItemHash> hashes,
                                                  std::span<bool> found) {
  const uint64_t* const words = array.words;
  const Geometry& geometry = array.geometry;
  const unsigned lines = geometry.lines_per_lookup;
  const Line line(geometry);
  // Skips the prefetch if the array is in the cache, where it would cost as much as the lookup
  // itself.
  const bool fetches = geometry.size_bytes() >= kCachedBytes;
  std::array<uint8_t, kGroupItems> open;
  size_t open_count = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    open[open_count] = static_cast<uint8_t>(i);
    open_count += !found[i];
  }
  const auto fetch = [&](size_t i) {
    if (fetches && i < open_count) prefetch_lines(words, LineWalk(hashes[open[i]], geometry), 1);
  };
  for (size_t i = 0; i < kLinesAhead; ++i) fetch(i);
  size_t left = 0;
  for (size_t i = 0; i < open_count; ++i) {
    fetch(i + kLinesAhead);
    const LineWalk walk(hashes[open[i]], geometry);
    // No branch, because the result of a lookup is unpredictable.
    open[left] = open[i];
    left += line.all_set(words + walk.word_index(), walk.positions());
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

// The fields of an array that check_together() needs. They are few, so that they stay in registers.
template <class Line>
struct LineArray {
  const uint64_t* words = nullptr;
  uint64_t line_count = 0;
  Line line;
};

// An item whose bits are set in the first line of some arrays, and the set of these arrays.
struct Passed {
  uint32_t item;
  uint32_t arrays;  // bitmap, whose highest bit represents the first array
};

template <class Line>
struct LineArrays {
  using List = std::array<LineArray<Line>, kGroupArrays>;
  explicit LineArrays(std::span<const ArrayView> views) {
    for (const ArrayView& view : views) {
      const Geometry& geometry = view.geometry;
      all[count++] = {view.words, geometry.bit_count / kLineBits, Line(geometry)};
      // Skips the prefetch if the array is in the cache, where it would cost as much as the lookup
      // itself.
      if (geometry.size_bytes() >= kCachedBytes) fetched[fetched_count++] = all[count - 1];
    }
  }
  void prefetch_firsts(ItemHash hash) const {
    for (const LineArray<Line>& array : std::span(fetched).first(fetched_count)) {
      core::prefetch(array.words + line_word_index(hash.first, array.line_count));
    }
  }

  List all;
  List fetched;
  size_t count = 0;
  size_t fetched_count = 0;
};

// Checks the first line of each item in all small arrays. Instructions, not cache misses, limit the
// speed here, so an item's state stays in registers over all arrays. Returns the number of items
// that match in some array.
template <class Line>
[[gnu::always_inline]] inline size_t check_first_lines(const LineArrays<Line>& arrays,
                                                       std::span<const ItemHash> hashes,
                                                       std::span<const bool> found,
                                                       std::array<Passed, kGroupItems>& passed) {
  const size_t ahead = kLinesAhead / std::max<size_t>(arrays.fetched_count, 1);
  for (size_t i = 0; i < std::min(ahead, hashes.size()); ++i) arrays.prefetch_firsts(hashes[i]);
  size_t passed_count = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + ahead < hashes.size()) arrays.prefetch_firsts(hashes[i + ahead]);
    if (found[i]) continue;
    const typename Line::Pattern pattern(LineWalk(hashes[i], {}).positions());
    uint32_t passes = 0;
    for (const LineArray<Line>& array : std::span(arrays.all).first(arrays.count)) {
      const uint64_t* const line = array.words + line_word_index(hashes[i].first, array.line_count);
      passes = 2 * passes + array.line.all_set(line, pattern);
    }
    // No branch, because the result of a lookup is unpredictable.
    passed[passed_count] = {static_cast<uint32_t>(i), passes};
    passed_count += passes != 0;
  }
  return passed_count;
}

template <class Line>
[[gnu::always_inline]] inline void check_together(std::span<const ArrayView> views,
                                                  std::span<const ItemHash> hashes,
                                                  std::span<bool> found) {
  assert(views.size() <= kGroupArrays);
  const LineArrays<Line> arrays(views);
  // Bitmap of the arrays with further lines to prefetch, in the order of Passed::arrays.
  uint32_t fetched = 0;
  for (const auto& [words, geometry] : views) {
    const bool has_more = geometry.lines_per_lookup > 1 && geometry.size_bytes() >= kCachedBytes;
    fetched = 2 * fetched + has_more;
  }
  std::array<Passed, kGroupItems> passed;
  const size_t passed_count = check_first_lines<Line>(arrays, hashes, found, passed);
  for (size_t n = 0; n < passed_count && fetched != 0; ++n) {
    for (uint32_t left = passed[n].arrays & fetched; left != 0; left &= left - 1) {
      const size_t i = views.size() - 1 - static_cast<size_t>(std::countr_zero(left));
      LineWalk walk(hashes[passed[n].item], views[i].geometry);
      walk.advance();
      prefetch_lines(views[i].words, walk, views[i].geometry.lines_per_lookup - 1U);
    }
  }
  for (const Passed& item : std::span(passed).first(passed_count)) {
    for (uint32_t left = item.arrays; left != 0 && !found[item.item]; left &= left - 1) {
      const size_t i = views.size() - 1 - static_cast<size_t>(std::countr_zero(left));
      LineWalk walk(hashes[item.item], views[i].geometry);
      walk.advance();
      const unsigned others = views[i].geometry.lines_per_lookup - 1U;
      found[item.item] = check_lines(views[i].words, walk, others, arrays.all[i].line);
    }
  }
}

template <class Line>
[[gnu::always_inline]] inline void check_items(std::span<const ArrayView> arrays,
                                               std::span<const ItemHash> hashes,
                                               std::span<bool> found) {
  assert(hashes.size() <= kGroupItems && found.size() >= hashes.size());
  // Later arrays are older and usually smaller. A big array is checked alone, because an item found
  // there causes no cache misses in the later arrays. All arrays from the first small array on are
  // checked together. So are arrays of similar sizes, such as the generations of a window.
  constexpr uint64_t kTogetherBytes = 2 << 20;
  const auto big_end = std::ranges::adjacent_find(arrays, [](const auto& newer, const auto& older) {
    const uint64_t size_bytes = newer.geometry.size_bytes();
    return size_bytes < kTogetherBytes || size_bytes / 4 * 3 <= older.geometry.size_bytes();
  });
  size_t alone = static_cast<size_t>(big_end - arrays.begin());
  if (arrays.size() - alone == 1) ++alone;
  for (const ArrayView& array : arrays.first(alone)) check_in_array<Line>(array, hashes, found);
  if (alone < arrays.size()) check_together<Line>(arrays.subspan(alone), hashes, found);
}

}  // namespace core::bloom
