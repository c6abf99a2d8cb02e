// SPDX-License-Identifier: MIT
//
// thread_heap: counts the heap bytes that are in use.
//
// jemalloc counts for each thread how many bytes it has allocated and how many it has freed. The
// difference, summed over all threads, is exact at any moment, and the counting costs nothing.
// Freed blocks that a thread caches for its next allocations are not in use.
//
// Invariants: counted_heap_bytes() includes the bytes of threads that have ended. Without jemalloc
// no thread is counted.
// Thread safety: all functions may be called from any thread.
// Source: jemalloc's mallctl, "thread.allocatedp" (https://jemalloc.net/jemalloc.3.html).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace core {

// Starts counting for the calling thread, including its earlier allocations. Must be called by each
// thread whose allocations may outlive one command.
void count_thread_heap();
// Returns the bytes that counted threads have allocated, minus the bytes that they have freed,
// modulo 2^64. Counted threads are those that have started counting (see count_thread_heap()). If
// they free bytes that uncounted threads have allocated, the result can wrap below 0.
uint64_t counted_heap_bytes();
// Number of counted threads that are alive.
size_t counted_thread_count();
// Returns the bytes that the calling thread has allocated, minus the bytes that it has freed,
// modulo 2^64. Returns nullopt without jemalloc. Starts counting for the thread if needed.
std::optional<uint64_t> thread_heap_bytes();

}  // namespace core
