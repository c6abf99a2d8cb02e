// SPDX-License-Identifier: MIT
//
// prefetch: requests a cache line before it is used.
//
// Thread safety: any address is allowed, even one that is not mapped.
#pragma once

namespace core {

inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  // g++ 12 considers a function that only prefetches to have no effect, and removes its body and
  // its calls. An empty volatile statement prevents that.
  asm volatile("");
}

}  // namespace core
