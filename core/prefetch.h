// SPDX-License-Identifier: MIT
//
// prefetch: requests a cache line before it is used.
//
// Thread safety: may be called from any thread. Any address is allowed, even an unmapped address.
#pragma once

namespace core {

inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  // g++ 12 considers a function that only prefetches to have no effect, and removes its body and
  // its calls. An empty volatile statement prevents that.
  asm volatile("");
}

}  // namespace core
