// SPDX-License-Identifier: MIT
//
// The 64-bit hash of a key, computed once per command, and which of its bits mean what: the top 6
// pick the stripe, the next 8 are the tag kept in the bucket, the low ones pick the bucket.
//
// Source: XXH3 (https://github.com/Cyan4973/xxHash), seeded against chosen keys.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace core::keyspace {

inline constexpr unsigned kStripeBits = 6;
inline constexpr unsigned kStripeCount = 1U << kStripeBits;

inline uint64_t hash_key(std::string_view key, uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}
inline unsigned stripe_of(uint64_t hash) {
  return static_cast<unsigned>(hash >> (64 - kStripeBits));
}
inline unsigned stripe_of_slot(unsigned slot) {
  return slot % kStripeCount;
}
// The hash of a key that is placed by slot: only the bits of the stripe are others.
uint64_t hash_by_slot(uint64_t hash, std::string_view key);
inline uint8_t tag_of(uint64_t hash) {
  return static_cast<uint8_t>(hash >> (56 - kStripeBits));
}

}  // namespace core::keyspace
