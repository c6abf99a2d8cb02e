// SPDX-License-Identifier: MIT
//
// Single bits, counts and searches over a plain byte range: the arithmetic of SETBIT, GETBIT,
// BITCOUNT and BITPOS.
//
// Invariants: bit 0 is the most significant bit of byte 0, as in Redis; ranges are inclusive at
// both ends, and whatever of a range lies beyond the bytes does not exist.
// Thread safety: pure functions; the caller keeps the bytes still.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace core::bitmap {

// False beyond the end: a bitmap goes on in zeros.
bool get_bit(std::span<const uint8_t> bytes, uint64_t bit_offset);

// Returns the bit that was there before. REQUIRES: bit_offset < 8 * bytes.size().
bool set_bit(std::span<uint8_t> bytes, uint64_t bit_offset, bool value);

uint64_t count_bits(std::span<const uint8_t> bytes);

// Counts within [first_bit, last_bit]; an empty or reversed range holds none.
uint64_t count_bits(std::span<const uint8_t> bytes, uint64_t first_bit, uint64_t last_bit);

// The lowest position in [first_bit, last_bit] that holds `bit`. The zeros after the last byte are
// not found here: whether BITPOS counts them depends on how its range was written.
std::optional<uint64_t> find_bit(std::span<const uint8_t> bytes, bool bit, uint64_t first_bit,
                                 uint64_t last_bit);

}  // namespace core::bitmap
