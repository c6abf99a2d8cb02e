// SPDX-License-Identifier: MIT
//
// Single bits, counts and searches over a byte range: the operations of SETBIT, GETBIT, BITCOUNT
// and BITPOS.
//
// Invariants: bit 0 is the most significant bit of byte 0, as in Redis. Ranges include both ends;
// the part of a range beyond the bytes is ignored.
// Thread safety: pure functions; the bytes must not change during a call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace core::bitmap {

// Returns false beyond the end, as if zeros followed the bitmap.
bool get_bit(std::span<const uint8_t> bytes, uint64_t bit_offset);

// Returns the previous value of the bit. REQUIRES: bit_offset < 8 * bytes.size().
bool set_bit(std::span<uint8_t> bytes, uint64_t bit_offset, bool value);

uint64_t count_bits(std::span<const uint8_t> bytes);

// Counts the set bits within [first_bit, last_bit]; 0 for an empty or reversed range.
uint64_t count_bits(std::span<const uint8_t> bytes, uint64_t first_bit, uint64_t last_bit);

// Returns the lowest position in [first_bit, last_bit] with value `bit`. Does not search the zeros
// after the last byte: whether BITPOS counts these zeros depends on the form of its range.
std::optional<uint64_t> find_bit(std::span<const uint8_t> bytes, bool bit, uint64_t first_bit,
                                 uint64_t last_bit);

}  // namespace core::bitmap
