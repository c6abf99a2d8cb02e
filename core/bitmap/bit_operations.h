// SPDX-License-Identifier: MIT
//
// BITOP: one bitmap out of several.
//
// Invariants: a source that ends early goes on in zeros, as far as `out` reaches.
// Thread safety: pure functions; the caller keeps the sources still.
// Source: Redis' BITOP page; DIFF, DIFF1, ANDOR and ONE came with Redis 8.2.
#pragma once

#include <cstdint>
#include <span>

namespace core::bitmap {

// X is the first source, Y are all the others.
enum class BitOperation : uint8_t {
  kAnd,
  kOr,
  kXor,
  kNot,    // not X; takes exactly one source
  kDiff,   // in X and in no Y
  kDiff1,  // in some Y and not in X
  kAndOr,  // in X and in some Y
  kOne,    // in exactly one of all sources
};

// Fills all of `out`, which the caller sizes: for BITOP, like the longest source. Sources beyond
// that size are cut. No sources give zeros.
// REQUIRES: `out` overlaps no source; kNot comes with one source.
void combine(BitOperation operation, std::span<const std::span<const uint8_t>> sources,
             std::span<uint8_t> out);

}  // namespace core::bitmap
