// SPDX-License-Identifier: MIT
//
// Asking for a cache line ahead of its use.
//
// Thread safety: any address may be asked for, even one that is not mapped.
#pragma once

namespace core {

inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  // g++ 12 takes a function that does nothing but prefetch for one without effect, and drops both
  // its body and its calls; an empty volatile statement keeps them.
  asm volatile("");
}

}  // namespace core
