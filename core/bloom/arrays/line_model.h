// SPDX-License-Identifier: MIT
//
// LineModel: the error rate of a layout whose bits are confined to cache lines, and its inverse.
//
// Invariants: error_rate() is exact for one line per lookup. For more lines it is an upper bound of
// the true rate; unit tests compare it with simulated rates. error_rate() decreases as line_count
// grows.
// Thread safety: pure functions.
// Source: docs/bloom_math.md, "Error rate of a line layout"; Putze, Sanders, Singler 2009, "Cache-,
// Hash- and Space-Efficient Bloom Filters".
#pragma once

#include <cstdint>
#include <optional>

namespace core::bloom {

inline constexpr unsigned kLineBits = 512;
inline constexpr unsigned kMaxBitsPerLine = 7;
inline constexpr unsigned kMaxLinesPerLookup = 16;

struct LineModel {
  // Number of lines. It is a double, so that a solver may try values between whole numbers.
  double line_count = 1;
  unsigned lines_per_lookup = 1;
  unsigned bits_per_line = 1;
  // Bits of a line that items use; fewer than kLineBits if a layout reserves some.
  unsigned line_bits = kLineBits;
  // True if an item's bits in a line lie in different lanes (lane_sets.h). Otherwise each bit may
  // lie anywhere in the line.
  bool has_lanes = false;

  // Probability that an item that was never added is found among `item_count` items.
  double error_rate(double item_count) const;
  // Expected number of set bits after `item_count` items, and the variance of this number.
  double expected_ones(double item_count) const;
  double variance_of_ones(double item_count) const;
  // Returns the number of items that are expected to set `ones` bits. If `ones` is the number of
  // all bits, returns the number of items that are expected to leave one bit clear.
  double items_of_ones(double ones) const;
};

// Limits on the line models among which solve_line_model() chooses.
struct LineShapes {
  unsigned line_bits = kLineBits;
  unsigned bits_per_line_max = kMaxBitsPerLine;
  // The accepted excess of memory over the classic optimum, as a fraction of the optimum. More
  // memory allows fewer lines per lookup.
  double memory_slack = 0.04;
  bool has_lanes = false;
};

// Returns a shape that keeps `error_rate` at `capacity` items. A shape is preferred if it takes at
// most `memory_slack` more memory than a classic Bloom filter. Among the preferred shapes, returns
// the one with the fewest lines per lookup, then with the least memory. If no shape is preferred,
// returns the smallest one. Returns nullopt if no shape with at most twice the memory of a classic
// Bloom filter keeps the error rate.
std::optional<LineModel> solve_line_model(uint64_t capacity, double error_rate,
                                          const LineShapes& shapes = {});

}  // namespace core::bloom
