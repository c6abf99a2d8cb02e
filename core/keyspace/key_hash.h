// SPDX-License-Identifier: MIT
//
// The 64-bit hash of a key, computed once per command, and the meaning of its bits. The top 6 bits
// select the stripe, the next 8 are the tag kept in the bucket, the low bits select the bucket. If
// keys are placed by slot, the stripe is the slot's low 6 bits. The 8 bits after the tag are then
// the other bits of the slot.
//
// Thread safety: constants and pure functions.
// Source: XXH3 (https://github.com/Cyan4973/xxHash), with a seed, so that clients cannot choose
// keys of equal hashes.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace core::keyspace {

inline constexpr unsigned kStripeBits = 6;
inline constexpr unsigned kStripeCount = 1U << kStripeBits;
inline constexpr unsigned kStripeShift = 64 - kStripeBits;
inline constexpr unsigned kTagShift = kStripeShift - 8;
inline constexpr unsigned kSlotShift = kTagShift - 8;

inline uint64_t hash_key(std::string_view key, uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}
inline unsigned stripe_of(uint64_t hash) {
  return static_cast<unsigned>(hash >> kStripeShift);
}
inline unsigned stripe_of_slot(unsigned slot) {
  return slot % kStripeCount;
}
inline uint8_t tag_of(uint64_t hash) {
  return static_cast<uint8_t>(hash >> kTagShift);
}

// Returns `hash` with some bits replaced by the slot of `key`. The bits that determine the bucket
// and the tag are kept. Defined in slot.cpp.
uint64_t hash_by_slot(uint64_t hash, std::string_view key);
// REQUIRES: `hash` comes from hash_by_slot().
inline unsigned slot_of_hash(uint64_t hash) {
  return (static_cast<unsigned>(hash >> kSlotShift) & 0xff) * kStripeCount + stripe_of(hash);
}

}  // namespace core::keyspace
