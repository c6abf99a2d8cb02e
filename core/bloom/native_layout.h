// SPDX-License-Identifier: MIT
//
// NativeLayout: an item's bits fall into a few independent cache lines of 512 bits, a few in each,
// so a lookup costs as many cache misses as it has lines, not as it has bits.
//
// Invariants: bit_count is a multiple of 512; hash_count is a multiple of lines_per_lookup, with at
// most seven bits in each line, so that one 64-bit word holds a line's nine-bit positions.
// Thread safety: check() may run beside check(); mark() needs the array to itself.
// Source: docs/bloom_math.md, "The native layout"; Putze, Sanders, Singler 2009; Lemire 2019, "Fast
// random integer generation in an interval"; Steele, Vigna 2021, "Computationally easy, spectrally
// good multipliers".
#pragma once

#include <cstdint>
#include <optional>

#include "core/bloom/hash.h"
#include "core/bloom/line_model.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

__extension__ using uint128_t = unsigned __int128;

// Walks the lines of one item: where each is, and which bits of it are the item's.
class LineWalk {
 public:
  LineWalk(ItemHash hash, uint64_t line_count)
      : place_(hash.first), pattern_(hash.second), line_count_(line_count) {}

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

struct NativeLayout {
  static constexpr LayoutId kId = LayoutId::kNative;
  // Below this two different items are as likely to share their 128-bit hash as to collide.
  static constexpr double kMinErrorRate = 0x1p-96;

  static std::optional<Geometry> size(uint64_t capacity, double error_rate);
  static double predicted_error(const Geometry& geometry, uint64_t item_count);

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    LineWalk walk(hash, geometry.bit_count / kLineBits);
    for (unsigned line = 0; line < geometry.lines_per_lookup; ++line, walk.advance()) {
      __builtin_prefetch(words + walk.word_index());
    }
  }

  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    const unsigned bits_per_line = geometry.hash_count / geometry.lines_per_lookup;
    LineWalk walk(hash, geometry.bit_count / kLineBits);
    for (unsigned line = 0; line < geometry.lines_per_lookup; ++line, walk.advance()) {
      const uint64_t* const words_of_line = words + walk.word_index();
      uint64_t positions = walk.positions();
      uint64_t all_set = 1;
      // No early exit inside a line: its bits are in the cache, a wrong branch costs more.
      for (unsigned bit = 0; bit < bits_per_line; ++bit, positions >>= 9) {
        all_set &= words_of_line[(positions >> 6) & 7] >> (positions & 63);
      }
      if ((all_set & 1) == 0) return false;
    }
    return true;
  }

  // True when some bit was clear before.
  static bool mark(uint64_t* words, const Geometry& geometry, ItemHash hash) {
    const unsigned bits_per_line = geometry.hash_count / geometry.lines_per_lookup;
    LineWalk walk(hash, geometry.bit_count / kLineBits);
    uint64_t newly_set = 0;
    for (unsigned line = 0; line < geometry.lines_per_lookup; ++line, walk.advance()) {
      uint64_t* const words_of_line = words + walk.word_index();
      uint64_t positions = walk.positions();
      for (unsigned bit = 0; bit < bits_per_line; ++bit, positions >>= 9) {
        uint64_t& word = words_of_line[(positions >> 6) & 7];
        const uint64_t mask = uint64_t{1} << (positions & 63);
        newly_set |= ~word & mask;
        word |= mask;
      }
    }
    return newly_set != 0;
  }
};

}  // namespace core::bloom
