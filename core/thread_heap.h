// SPDX-License-Identifier: MIT
//
// thread_heap: counts the blocks of the heap that are in use.
//
// jemalloc keeps for each thread how many bytes it has allocated and how many it has freed. Their
// sum is exact at any moment, and the counting costs nothing. Blocks that a thread has freed and
// keeps for its next allocations are not in use.
//
// Invariants: a thread that has ended stays in the sum. Without jemalloc no thread is counted.
// Thread safety: all functions may be called from any thread.
// Source: jemalloc's mallctl, "thread.allocatedp" (https://jemalloc.net/jemalloc.3.html).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace core {

// Counts the calling thread's blocks, from its first one on. To be called by each thread that
// allocates for longer than a command takes.
void count_thread_heap();
// Bytes in use, modulo 2^64: counted threads may have freed what others have allocated.
uint64_t counted_heap_bytes();
// Threads that are counted and live.
size_t counted_thread_count();
// Bytes that the calling thread has allocated, less those that it has freed, modulo 2^64; nullopt
// where threads are not counted. Counts the thread from then on.
std::optional<uint64_t> thread_heap_bytes();

}  // namespace core
