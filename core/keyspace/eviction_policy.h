// SPDX-License-Identifier: MIT
//
// EvictionPolicy: the rule by which keys are chosen for eviction.
//
// Thread safety: constants and pure functions.
// Source: redis.conf 7.0, "maxmemory-policy".
#pragma once

#include <cstdint>

namespace core::keyspace {

// Values of `maxmemory-policy`, in the order in which the option's row lists their names.
enum class EvictionPolicy : uint8_t {
  kVolatileLru,
  kVolatileLfu,
  kVolatileRandom,
  kVolatileTtl,
  kAllKeysLru,
  kAllKeysLfu,
  kAllKeysRandom,
  kNoEviction,
};
// True if only keys with an expiry may be evicted.
constexpr bool is_volatile(EvictionPolicy policy) {
  return policy <= EvictionPolicy::kVolatileTtl;
}
constexpr bool is_lru(EvictionPolicy policy) {
  return policy == EvictionPolicy::kVolatileLru || policy == EvictionPolicy::kAllKeysLru;
}
constexpr bool is_lfu(EvictionPolicy policy) {
  return policy == EvictionPolicy::kVolatileLfu || policy == EvictionPolicy::kAllKeysLfu;
}
constexpr bool is_random(EvictionPolicy policy) {
  return policy == EvictionPolicy::kVolatileRandom || policy == EvictionPolicy::kAllKeysRandom;
}

}  // namespace core::keyspace
