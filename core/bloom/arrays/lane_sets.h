// SPDX-License-Identifier: MIT
//
// The lanes of a cache line, and the sets of lanes in which an item sets bits.
//
// A line of 512 bits has sixteen lanes of 32 bits. An item sets one bit in each lane of a set of K
// lanes. The item's hash selects one of sixteen sets, which are the rotations of one base set.
//
// Invariants: the base set for K has the flattest autocorrelation of all sets of K lanes. So any
// two rotations have about the same number of common lanes. The sets are part of the file format.
// Thread safety: constants.
// Source: docs/bloom_math.md, "Lanes".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace core::bloom {

inline constexpr unsigned kLanes = 16;
inline constexpr unsigned kLaneBits = 32;
// The largest K. If an item needs more bits, two lines with half of the bits each take less memory
// than one line with all of them.
inline constexpr unsigned kMaxLanesPerItem = 10;

// Bitmap of the base set for each K; bit i stands for lane i.
inline constexpr std::array<uint16_t, kMaxLanesPerItem + 1> kLaneSets{
    0, 0x1, 0x3, 0xB, 0x53, 0x127, 0x167, 0x53B, 0x6B7, 0xB77, 0xDDF};

// Returns the bitmap of the base set for K = lane_count, rotated by `rotation` lanes.
constexpr uint16_t lane_set(unsigned lane_count, unsigned rotation) {
  const uint32_t twice = kLaneSets[lane_count] * 0x10001U;
  return static_cast<uint16_t>(twice >> (kLanes - rotation));
}

// One number per lane: 1 if the lane is in the set, else 0.
using LaneSetRow = std::array<uint32_t, kLanes>;
// The sixteen sets of K lanes, for one value of K. `rotations` is indexed by the rotation of a set.
struct alignas(64) LaneSetRows {
  std::array<LaneSetRow, kLanes> rotations{};
};

inline constexpr auto kLaneSetRows = [] {
  std::array<LaneSetRows, kMaxLanesPerItem + 1> rows{};
  for (unsigned count = 0; count <= kMaxLanesPerItem; ++count) {
    for (unsigned rotation = 0; rotation < kLanes; ++rotation) {
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        rows[count].rotations[rotation][lane] = lane_set(count, rotation) >> lane & 1;
      }
    }
  }
  return rows;
}();

}  // namespace core::bloom
