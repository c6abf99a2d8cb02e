// SPDX-License-Identifier: MIT
//
// BITOP: combines several bitmaps into one.
//
// Invariants: a source that is shorter than `out` counts as if zeros followed it.
// Thread safety: pure functions; the sources must not change during a call.
// Source: Redis' BITOP page; DIFF, DIFF1, ANDOR and ONE came with Redis 8.2.
#pragma once

#include <cstdint>
#include <span>

namespace core::bitmap {

// The operations of BITOP. The comment at an operation says which bits of the result are set.
enum class BitOperation : uint8_t {
  kAnd,
  kOr,
  kXor,
  kNot,    // bits that are clear in the only source
  kDiff,   // bits set in the first source and in no other source
  kDiff1,  // bits clear in the first source and set in at least one other source
  kAndOr,  // bits set in the first source and in at least one other source
  kOne,    // bits set in exactly one source
};

// Fills all of `out`. The caller chooses the size of `out`: BITOP uses the size of the longest
// source. Sources longer than `out` are cut. Without sources `out` is filled with zeros.
// REQUIRES: `out` overlaps no source; kNot has exactly one source.
void combine(BitOperation operation, std::span<const std::span<const uint8_t>> sources,
             std::span<uint8_t> out);

}  // namespace core::bitmap
