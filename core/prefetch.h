// SPDX-License-Identifier: MIT
//
// prefetch requests a cache line before it is read, prefetch_for_write before it is written. Any
// address is allowed, even an unmapped address.
//
// Thread safety: may be called from any thread.
#pragma once

namespace core {

[[gnu::always_inline]] inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  // g++ 12 considers a function that only prefetches to have no effect, and removes its body and
  // its calls. An empty volatile statement prevents that.
  asm volatile("");
}

// Requests the cache line with exclusive access, so that a later write does not wait for it. A line
// that was fetched for reading may be shared with another core's cache. Each write then waits for
// exclusive access to its line, and the writes wait for each other.
[[gnu::always_inline]] inline void prefetch_for_write(const void* address) {
#if defined(__x86_64__)
  // __builtin_prefetch() would emit prefetchw only if the compiler's target is known to support it,
  // so the instruction is written in assembly. Processors without prefetchw ignore it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
  asm volatile("");
#endif
}

}  // namespace core
