// SPDX-License-Identifier: MIT
//
// populate_pages: has the kernel provide memory that is about to be written, in one call. Written
// to without, each untouched page costs a fault, which is dearer than the page itself.
//
// Invariants: the bytes stay what they are. Ranges below kPopulatedBytesMin are left alone, as is
// everything where the kernel does not know how (Linux before 5.14): pages then come as they are
// touched. Never for ranges that may stay untouched.
// Thread safety: any thread.
// Source: madvise(2) about MADV_POPULATE_WRITE.
#pragma once

#include <cstddef>
#include <span>

namespace core {

inline constexpr size_t kPopulatedBytesMin = size_t{64} << 10;
// Longer ranges are better asked for in pieces, right before each is written: the kernel clears
// pages, which are then still in the processor's cache.
inline constexpr size_t kPopulatedBytesMax = size_t{1} << 20;

// The pages that lie within `range` as a whole.
void populate_pages(std::span<const std::byte> range);

}  // namespace core
