// SPDX-License-Identifier: MIT
//
// What can be asked of the allocator beyond memory: its figures, its report, and free pages back.
//
// Thread safety: all functions may be called from any thread.
// Source: jemalloc's mallctl (https://jemalloc.net/jemalloc.3.html); without it, mallinfo2(3) or
// the sanitizers' own.
#pragma once

#include <cstdint>
#include <string>

namespace server {

struct AllocatorFigures {
  uint64_t allocated_bytes = 0;  // handed out
  uint64_t active_bytes = 0;     // pages with something handed out
  uint64_t resident_bytes = 0;   // pages kept, the allocator's own included
};

AllocatorFigures allocator_figures();

// Bytes of all blocks in use. Blocks that a thread has freed and keeps for its next allocations are
// not in use. With jemalloc the figure is exact and costs some ten nanoseconds a thread.
uint64_t heap_bytes();
// Has heap_bytes() agree with the allocator, which also knows its own tables and threads that are
// not counted (core/thread_heap.h). Takes some 30 microseconds. Does nothing if another thread
// allocates meanwhile.
void correct_heap_bytes();
// "jemalloc-5.3.0", "libc" or "sanitizer".
std::string allocator_name();
// Gives pages that hold nothing back to the system.
void purge_allocator();
// The allocator's own long report; empty when it has none.
std::string allocator_report();

}  // namespace server
