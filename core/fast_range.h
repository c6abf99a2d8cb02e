// SPDX-License-Identifier: MIT
//
// A number in a range from a random word, by one multiplication instead of a division.
//
// Thread safety: pure functions.
// Source: Lemire 2019, "Fast random integer generation in an interval".
#pragma once

#include <cstdint>

namespace core {

__extension__ using uint128_t = unsigned __int128;

// Evenly over [0, count); the high bits of the word decide.
inline uint64_t fast_range(uint64_t word, uint64_t count) {
  return static_cast<uint64_t>((uint128_t{word} * count) >> 64);
}

}  // namespace core
