// SPDX-License-Identifier: MIT
//
// The error rate of bits that are confined to cache lines, as a formula, and its inverse.
//
// Invariants: error_rate() is exact for one line per lookup and an upper bound within the bounds
// tests measure for more; it falls as line_count grows.
// Thread safety: pure functions.
// Source: docs/bloom_math.md, "Error rate of a line layout"; Putze, Sanders, Singler 2009,
// "Cache-, Hash- and Space-Efficient Bloom Filters".
#pragma once

#include <cstdint>
#include <optional>

namespace core::bloom {

inline constexpr unsigned kLineBits = 512;
inline constexpr unsigned kMaxBitsPerLine = 7;
inline constexpr unsigned kMaxLinesPerLookup = 16;

struct LineModel {
  // A double, so that a solver may step between whole lines.
  double line_count = 1;
  unsigned lines_per_lookup = 1;
  unsigned bits_per_line = 1;
  // Bits of a line that items may have; fewer than kLineBits where a layout keeps some to itself.
  unsigned line_bits = kLineBits;

  // Probability that an item never added answers "present" among `item_count` others.
  double error_rate(double item_count) const;
  // Of the bits that are set after `item_count` items.
  double expected_ones(double item_count) const;
  double variance_of_ones(double item_count) const;
  // The items that are expected to set so many; of all bits, those of all but one.
  double items_of_ones(double ones) const;
};

// The cheapest shape that keeps `error_rate` at `capacity` items: the fewest lines per lookup whose
// memory stays within kMemorySlack of the classic optimum, then the least memory.
inline constexpr double kMemorySlack = 0.04;
std::optional<LineModel> solve_line_model(uint64_t capacity, double error_rate,
                                          unsigned line_bits = kLineBits);

}  // namespace core::bloom
