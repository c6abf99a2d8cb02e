// SPDX-License-Identifier: MIT
//
// Declares the functions of the allocator other than allocation: its statistics, its report, and
// the return of free pages.
//
// Thread safety: all functions may be called from any thread.
// Source: jemalloc's mallctl (https://jemalloc.net/jemalloc.3.html); without it, mallinfo2(3) or
// the sanitizers' own functions.
#pragma once

#include <cstdint>
#include <string>

namespace server {

struct AllocatorFigures {
  uint64_t allocated_bytes = 0;  // number of bytes of the blocks in use
  uint64_t active_bytes = 0;     // number of bytes of the pages that contain blocks in use

  // Bytes of the allocator's pages in physical memory. These include freed pages that were not
  // returned to the system, and pages with the allocator's own data.
  uint64_t resident_bytes = 0;
};

AllocatorFigures allocator_figures();

// Returns the bytes of all blocks in use. Blocks that a thread has freed and caches for its next
// allocations do not count. With jemalloc the result is exact, and the call takes about ten
// nanoseconds per thread.
uint64_t heap_bytes();
// Corrects heap_bytes() by the allocator's statistics, which include the allocator's own tables and
// the threads that are not counted (core/memory/thread_heap.h). Takes about 30 microseconds. Does
// nothing if another thread allocates during the call.
void correct_heap_bytes();
// Returns the name of the allocator: "jemalloc-5.3.0", "libc" or "sanitizer".
std::string allocator_name();
// Returns empty pages to the system.
void purge_allocator();
// Returns the allocator's own report; empty if it has none.
std::string allocator_report();

}  // namespace server
