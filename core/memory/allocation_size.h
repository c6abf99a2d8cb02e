// SPDX-License-Identifier: MIT
//
// allocation_size: the number of bytes that the allocator uses for a request, and for a string.
//
// The allocator rounds requests up to size classes. Where counted bytes are compared with the bytes
// in use on the heap, such as those of thread_heap.h, the count must include the rounding.
//
// Invariants: without jemalloc, the results are estimates.
// Thread safety: pure functions.
// Source: jemalloc's size classes (https://jemalloc.net/jemalloc.3.html).
#pragma once

#include <cstddef>
#include <string>

namespace core {

// Number of bytes that the allocator uses for a request of `bytes`: jemalloc's size classes, four
// per doubling. Growth in these steps wastes no memory and makes appends amortised O(1).
size_t allocation_size(size_t bytes);

// Returns the heap memory of a std::string with this capacity, without the string object itself.
inline size_t text_bytes(size_t capacity) {
  const size_t held_inside = std::string().capacity();
  return capacity <= held_inside ? 0 : allocation_size(capacity + 1);
}

inline size_t text_bytes(const std::string& text) {
  return text_bytes(text.capacity());
}

}  // namespace core
