// SPDX-License-Identifier: MIT
//
// fast_range: maps a random word to a range by one multiplication instead of a division.
//
// Thread safety: pure functions.
// Source: Lemire 2019, "Fast random integer generation in an interval".
#pragma once

#include <cstdint>

namespace core {

__extension__ using uint128_t = unsigned __int128;

// Returns a number in [0, count), uniformly distributed. The high bits of the word determine the
// result.
inline uint64_t fast_range(uint64_t word, uint64_t count) {
  return static_cast<uint64_t>((uint128_t{word} * count) >> 64);
}

}  // namespace core
