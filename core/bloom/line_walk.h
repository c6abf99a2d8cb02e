// SPDX-License-Identifier: MIT
//
// LineWalk: computes the lines of an item. A line is a 64-byte cache line of the bit array. The
// header also has the loops over lines, which all line kernels share.
//
// Invariants: a Line type has `Walk`, `Line(geometry)`, `all_set(words, positions)` and, if it sets
// bits, `set(words, positions)`. all_set() has no branch that depends on bits. The loops are
// inlined, so that they are compiled for the instruction set of each caller.
// Thread safety: checks may run in parallel; setting bits needs exclusive access to the array.
// Source: docs/bloom_math.md, "The native layout, version 1"; Steele, Vigna 2021, "Computationally
// easy, spectrally good multipliers".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/bloom/layer.h"
#include "core/bloom/line_kernels.h"
#include "core/fast_range.h"
#include "core/prefetch.h"

namespace core::bloom {

// Index of the first word of the line that the hash `place` selects.
inline uint64_t line_word_index(uint64_t place, uint64_t line_count) {
  return fast_range(place, line_count) * 8;
}

// Iterates over the lines of one item. Returns the word index of each line, and the item's bit
// positions in the line.
class LineWalk {
 public:
  LineWalk(ItemHash hash, LineShape shape)
      : place_(hash.first), pattern_(hash.second), line_count_(shape.line_count) {}

  // Index of the current line's first word.
  uint64_t word_index() const { return line_word_index(place_, line_count_); }
  // Returns the item's bit positions in the line: nine bits each, the first in the lowest bits.
  uint64_t positions() const {
    uint64_t mixed = pattern_;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93;
    return mixed ^ (mixed >> 32);
  }
  void advance() {
    // The high half of a multiplicative generator selects lines. The low bits of the generator are
    // never used.
    place_ *= 0xF1357AEA2E62A9C5;
    pattern_ += 0x9E3779B97F4A7C15;
  }

 private:
  uint64_t place_;
  uint64_t pattern_;
  uint64_t line_count_;
};

// Prefetches the next `count` lines of the walk.
template <class Walk>
[[gnu::always_inline]] inline void prefetch_lines(const uint64_t* words, Walk walk,
                                                  unsigned count) {
  for (; count > 0; --count, walk.advance()) core::prefetch(words + walk.word_index());
}

template <class Line>
[[gnu::always_inline]] inline bool check_lines(const uint64_t* words, typename Line::Walk walk,
                                               unsigned count, const Line& line) {
  for (; count > 0; --count, walk.advance()) {
    if (!line.all_set(words + walk.word_index(), walk.positions())) return false;
  }
  return true;
}

// Checks all lines of an item, even if an earlier line lacks a bit. Without a branch between the
// lines the processor loads all lines at once. An item that is present needs every line anyway. A
// mispredicted branch costs more than loading a line that is not needed.
template <class Line>
[[gnu::always_inline]] inline bool check_item(const uint64_t* words, LineShape shape,
                                              const Line& line, ItemHash hash) {
  typename Line::Walk walk(hash, shape);
  bool has_all = line.all_set(words + walk.word_index(), walk.positions());
  for (unsigned i = 1; i < shape.lines_per_lookup; ++i) {
    walk.advance();
    has_all &= line.all_set(words + walk.word_index(), walk.positions());
  }
  return has_all;
}

// Looks the item up in at most 64 layers. Its pattern in the first line is the same for all of
// them. All first lines are checked without a branch, because a mispredicted branch costs more than
// a check. Few layers have a first line that matches, and only their other lines are read.
template <class Line>
[[gnu::always_inline]] inline bool check_in_some(std::span<const Layer> layers, ItemHash hash) {
  for (const Layer& layer : layers) {
    const Geometry geometry = layer.geometry();
    if (!is_fetched(geometry)) continue;
    const uint64_t line_count = geometry.bit_count / kLineBits;
    core::prefetch(layer.bits().words() + line_word_index(hash.first, line_count));
  }
  const typename Line::Pattern pattern(typename Line::Walk(hash, {}).positions());
  uint64_t matches = 0;  // bitmap with one bit per layer; bit 0 represents the last layer
  for (const Layer& layer : layers) {
    const LineShape shape(layer.geometry());
    const uint64_t index = line_word_index(hash.first, shape.line_count);
    matches = 2 * matches + Line(shape).all_set(layer.bits().words() + index, pattern);
  }
  for (; matches != 0; matches &= matches - 1) {
    const size_t behind = static_cast<size_t>(std::countr_zero(matches));
    const Layer& layer = layers[layers.size() - 1 - behind];
    const LineShape shape(layer.geometry());
    typename Line::Walk walk(hash, shape);
    walk.advance();
    if (check_lines(layer.bits().words(), walk, shape.lines_per_lookup - 1, Line(shape))) {
      return true;
    }
  }
  return false;
}

template <class Line>
[[gnu::always_inline]] inline bool check_in_any(std::span<const Layer> layers, ItemHash hash) {
  constexpr size_t kAtOnceMax = 64;
  while (layers.size() > kAtOnceMax) {
    if (check_in_some<Line>(layers.last(kAtOnceMax), hash)) return true;
    layers = layers.first(layers.size() - kAtOnceMax);
  }
  return check_in_some<Line>(layers, hash);
}

// Sets the bits of an item. Returns true if at least one of them was clear before.
template <class Line>
[[gnu::always_inline]] inline bool mark_item(uint64_t* words, LineShape shape, const Line& line,
                                             ItemHash hash) {
  typename Line::Walk walk(hash, shape);
  bool has_changed = line.set(words + walk.word_index(), walk.positions());
  for (unsigned i = 1; i < shape.lines_per_lookup; ++i) {
    walk.advance();
    has_changed |= line.set(words + walk.word_index(), walk.positions());
  }
  return has_changed;
}

// Prefetch distance in lines. This distance keeps a core's miss buffers busy: the core compares
// some lines while other lines are loaded. If all lines were prefetched before the first
// comparison, the core would wait for them.
inline constexpr size_t kLinesAhead = 40;

// Index of an item in a group. It is not a byte type: a byte may alias any object, so the compiler
// would reload other values after each write.
using ItemIndex = uint16_t;

// The items of a group that are not found yet.
class OpenItems {
 public:
  explicit OpenItems(std::span<const bool> found) {
    size_t count = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      indices_[count] = static_cast<ItemIndex>(i);
      count += !found[i];
    }
    count_ = count;
  }
  size_t size() const { return count_; }
  size_t operator[](size_t i) const { return indices_[i]; }

 private:
  std::array<ItemIndex, kGroupItems> indices_;
  size_t count_ = 0;
};

// AllItems: all items of a group, as a list that stores no indices. Used in the usual case that no
// item is found yet.
class AllItems {
 public:
  explicit AllItems(size_t count) : count_(count) {}
  size_t size() const { return count_; }
  size_t operator[](size_t i) const { return i; }

 private:
  size_t count_;
};

inline bool is_none_found(std::span<const bool> found) {
  return std::memchr(found.data(), 1, found.size()) == nullptr;
}

template <class Line, class Items>
[[gnu::always_inline]] inline uint64_t mark_listed(uint64_t* words, LineShape shape,
                                                   const Line& line, bool fetches,
                                                   std::span<const ItemHash> hashes,
                                                   const Items& items, std::span<bool> found) {
  const auto fetch = [&](size_t i) {
    if (!fetches || i >= items.size()) return;
    typename Line::Walk walk(hashes[items[i]], shape);
    for (unsigned left = shape.lines_per_lookup; left > 0; --left, walk.advance()) {
      core::prefetch_for_write(words + walk.word_index());
    }
  };
  const size_t ahead = std::max<size_t>(1, kLinesAhead / shape.lines_per_lookup);
  for (size_t i = 0; i < ahead; ++i) fetch(i);
  uint64_t new_count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    fetch(i + ahead);
    const bool is_new = mark_item(words, shape, line, hashes[items[i]]);
    found[items[i]] = !is_new;
    new_count += is_new;
  }
  return new_count;
}

// One pass: each item's bits are checked and set together, while the lines of later items are
// loaded.
template <class Line>
[[gnu::always_inline]] inline uint64_t mark_items(uint64_t* words, LineShape shape,
                                                  const Line& line, bool fetches,
                                                  std::span<const ItemHash> hashes,
                                                  std::span<bool> found) {
  found = found.first(hashes.size());
  if (is_none_found(found)) {
    return mark_listed(words, shape, line, fetches, hashes, AllItems(hashes.size()), found);
  }
  return mark_listed(words, shape, line, fetches, hashes, OpenItems(found), found);
}

// Looks up the items in two rounds of cache misses. The first round loads the first line of every
// item, where the lookup of nearly all absent items ends. The second round loads the other lines of
// the items that the first round has not excluded.
template <class Line, class Items>
[[gnu::always_inline]] inline void check_listed(const ArrayView& array,
                                                std::span<const ItemHash> hashes,
                                                const Items& items, std::span<bool> found) {
  const uint64_t* const words = array.words;
  const LineShape shape(array.geometry);
  const unsigned others = shape.lines_per_lookup - 1;
  const Line line(array.geometry);
  const bool fetches = is_fetched(array.geometry);
  const auto fetch = [&](size_t i) {
    if (!fetches || i >= items.size()) return;
    prefetch_lines(words, typename Line::Walk(hashes[items[i]], shape), 1);
  };
  for (size_t i = 0; i < kLinesAhead; ++i) fetch(i);
  for (size_t i = 0; i < items.size(); ++i) {
    fetch(i + kLinesAhead);
    const typename Line::Walk walk(hashes[items[i]], shape);
    // A separate loop lists the items whose first line has all their bits set. If the loop that
    // checks the lines wrote the list, each write address would depend on the previous result. That
    // would delay the load of the next line.
    found[items[i]] = line.all_set(words + walk.word_index(), walk.positions());
  }
  if (others == 0) return;
  std::array<ItemIndex, kGroupItems> left;
  size_t passed = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    left[passed] = static_cast<ItemIndex>(items[i]);
    passed += found[items[i]];
  }
  const size_t left_count = passed;
  const auto others_of = [&](size_t i) {
    typename Line::Walk walk(hashes[left[i]], shape);
    walk.advance();
    return walk;
  };
  const auto fetch_others = [&](size_t i) {
    if (fetches && i < left_count) prefetch_lines(words, others_of(i), others);
  };
  const size_t ahead = std::max<size_t>(1, kLinesAhead / others);
  for (size_t i = 0; i < ahead; ++i) fetch_others(i);
  for (size_t i = 0; i < left_count; ++i) {
    fetch_others(i + ahead);
    found[left[i]] = check_lines(words, others_of(i), others, line);
  }
}

template <class Line>
[[gnu::always_inline]] inline void check_in_array(const ArrayView& array,
                                                  std::span<const ItemHash> hashes,
                                                  std::span<bool> found) {
  found = found.first(hashes.size());
  if (is_none_found(found)) {
    check_listed<Line>(array, hashes, AllItems(hashes.size()), found);
  } else {
    check_listed<Line>(array, hashes, OpenItems(found), found);
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
  uint32_t arrays;  // bitmap with one bit per array; bit 0 represents the last array
};

template <class Line>
struct LineArrays {
  using List = std::array<LineArray<Line>, kGroupArrays>;
  explicit LineArrays(std::span<const ArrayView> views) {
    for (const ArrayView& view : views) {
      const Geometry& geometry = view.geometry;
      all[count++] = {view.words, geometry.bit_count / kLineBits, Line(geometry)};
      if (is_fetched(geometry)) fetched[fetched_count++] = all[count - 1];
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

// Checks the first line of each item in all arrays. Instructions, not cache misses, limit the speed
// here, so an item's state stays in registers over all arrays. Returns the number of items that
// match in some array.
template <class Line>
[[gnu::always_inline]] inline size_t check_first_lines(const LineArrays<Line>& arrays,
                                                       std::span<const ItemHash> hashes,
                                                       std::span<const bool> found,
                                                       std::array<Passed, kGroupItems>& passed) {
  const size_t ahead = kLinesAhead / std::max<size_t>(arrays.fetched_count, 1);
  for (size_t i = 0; i < std::min(ahead, hashes.size()); ++i) arrays.prefetch_firsts(hashes[i]);
  std::array<uint32_t, kGroupItems> arrays_of_item{};
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + ahead < hashes.size()) arrays.prefetch_firsts(hashes[i + ahead]);
    if (found[i]) continue;
    const typename Line::Pattern pattern(typename Line::Walk(hashes[i], {}).positions());
    uint32_t passes = 0;
    for (const LineArray<Line>& array : std::span(arrays.all).first(arrays.count)) {
      const uint64_t* const line = array.words + line_word_index(hashes[i].first, array.line_count);
      passes = 2 * passes + array.line.all_set(line, pattern);
    }
    arrays_of_item[i] = passes;
  }
  // The loop that lists the items is separate from the loop that checks the lines. Otherwise each
  // write address would depend on the previous result, which would delay the load of the next line.
  // The loop has no branch, because the results are unpredictable.
  size_t passed_count = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    passed[passed_count] = {static_cast<uint32_t>(i), arrays_of_item[i]};
    passed_count += arrays_of_item[i] != 0;
  }
  return passed_count;
}

template <class Line>
[[gnu::always_inline]] inline void check_together(std::span<const ArrayView> views,
                                                  std::span<const ItemHash> hashes,
                                                  std::span<bool> found) {
  assert(views.size() <= kGroupArrays);
  const LineArrays<Line> arrays(views);
  // Bitmap of the arrays whose next lines must be prefetched: arrays above the minimum size for
  // prefetching, with several lines per lookup. Its bits have the order of Passed::arrays.
  uint32_t fetched = 0;
  for (const auto& [words, geometry] : views) {
    const bool has_more = geometry.lines_per_lookup > 1 && is_fetched(geometry);
    fetched = 2 * fetched + has_more;
  }
  std::array<Passed, kGroupItems> passed;
  const size_t passed_count = check_first_lines<Line>(arrays, hashes, found, passed);
  for (size_t n = 0; n < passed_count && fetched != 0; ++n) {
    for (uint32_t left = passed[n].arrays & fetched; left != 0; left &= left - 1) {
      const size_t i = views.size() - 1 - static_cast<size_t>(std::countr_zero(left));
      typename Line::Walk walk(hashes[passed[n].item], views[i].geometry);
      walk.advance();
      prefetch_lines(views[i].words, walk, views[i].geometry.lines_per_lookup - 1U);
    }
  }
  for (const Passed& item : std::span(passed).first(passed_count)) {
    for (uint32_t left = item.arrays; left != 0 && !found[item.item]; left &= left - 1) {
      const size_t i = views.size() - 1 - static_cast<size_t>(std::countr_zero(left));
      typename Line::Walk walk(hashes[item.item], views[i].geometry);
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
  // Later arrays are older and usually smaller. A big array is checked alone, because items found
  // there need no check, and so no cache misses, in the later arrays. This ends at the first array
  // that is small, or not much bigger than the next one, as in the generations of a window. That
  // array and all later ones are checked together.
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
