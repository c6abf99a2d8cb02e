// SPDX-License-Identifier: MIT
//
// populate_pages: allocates the pages of memory that is about to be written, in one system call.
// Otherwise each untouched page causes a fault, which costs more than clearing the page.
//
// Invariants: the bytes do not change. Ranges below kPopulatedBytesMin are ignored. If the kernel
// does not support the call (Linux before 5.14), pages are allocated as they are touched. Do not
// populate ranges that may stay untouched.
// Thread safety: may be called from any thread.
// Source: madvise(2) about MADV_POPULATE_WRITE.
#pragma once

#include <cstddef>
#include <span>

namespace core {

inline constexpr size_t kPopulatedBytesMin = size_t{64} << 10;
// Populate longer ranges in pieces, each immediately before it is written. The kernel clears the
// pages, which are then still in the processor's cache.
inline constexpr size_t kPopulatedBytesMax = size_t{1} << 20;

// Populates the pages that lie completely within `range`.
void populate_pages(std::span<const std::byte> range);

}  // namespace core
