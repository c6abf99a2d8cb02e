// SPDX-License-Identifier: MIT
//
// DoubleHashing: sets and checks the bits whose indices are derived from two hashes, as the layouts
// of RedisBloom and valkey-bloom do. The header also has their common formula for the error rate.
//
// Thread safety: check() calls may run in parallel; mark() needs exclusive access to the array.
// Source: Kirsch, Mitzenmacher 2006, "Less Hashing, Same Performance".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/bloom/hash.h"
#include "core/bloom/parameters.h"
#include "core/prefetch.h"

namespace core::bloom {

// Error rate of a classic array with `item_count` items. Includes the chance that the whole
// sequence of a double-hashed item equals that of another item.
double double_hashing_error(const Geometry& geometry, uint64_t item_count);

// REQUIRES: the type Probes has a constructor `Probes(hash, geometry)` and a member `uint64_t
// next()`, which returns the item's next bit index.
template <class Probes>
struct DoubleHashing {
  // Number of an item's bits that are prefetched. A lookup of an absent item seldom reads more bits
  // than that.
  static constexpr unsigned kPrefetchedProbes = 8;

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    Probes probes(hash, geometry);
    const unsigned count = std::min<unsigned>(geometry.hash_count, kPrefetchedProbes);
    for (unsigned i = 0; i < count; ++i) core::prefetch(words + probes.next() / 64);
  }

  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    Probes probes(hash, geometry);
    for (unsigned i = 0; i < geometry.hash_count; ++i) {
      const uint64_t bit = probes.next();
      if ((words[bit / 64] >> (bit % 64) & 1) == 0) return false;
    }
    return true;
  }

  // Sets found[i] for each item that some array contains. Items with found[i] already set are
  // skipped.
  static void check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                          std::span<bool> found) {
    for (const ArrayView& array : arrays) {
      for (size_t i = 0; i < hashes.size(); ++i) {
        if (!found[i]) prefetch(array.words, array.geometry, hashes[i]);
      }
      for (size_t i = 0; i < hashes.size(); ++i) {
        if (!found[i]) found[i] = check(array.words, array.geometry, hashes[i]);
      }
    }
  }

  // Sets the item's bits. Returns true if at least one of them was clear before.
  static bool mark(uint64_t* words, const Geometry& geometry, ItemHash hash) {
    Probes probes(hash, geometry);
    uint64_t newly_set = 0;
    for (unsigned i = 0; i < geometry.hash_count; ++i) {
      const uint64_t bit = probes.next();
      const uint64_t mask = uint64_t{1} << (bit % 64);
      newly_set |= ~words[bit / 64] & mask;
      words[bit / 64] |= mask;
    }
    return newly_set != 0;
  }

  // Sets the bits of each item, in the order of the items. If all bits of item i were set before,
  // sets found[i] to true. Skips the items whose found[i] is true at the start. Returns the number
  // of items for which at least one clear bit was set.
  static uint64_t mark_group(uint64_t* words, const Geometry& geometry,
                             std::span<const ItemHash> hashes, std::span<bool> found) {
    for (const ItemHash& hash : hashes) prefetch(words, geometry, hash);
    uint64_t new_count = 0;
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (found[i]) continue;
      found[i] = !mark(words, geometry, hashes[i]);
      new_count += !found[i];
    }
    return new_count;
  }

  // Calls visit(bit) for each bit that mark() sets.
  template <class Visitor>
  static void visit_bits(const Geometry& geometry, ItemHash hash, Visitor&& visit) {
    Probes probes(hash, geometry);
    for (unsigned i = 0; i < geometry.hash_count; ++i) visit(probes.next());
  }

  static bool is_valid(const Geometry& /*geometry*/) { return true; }

  static double predicted_error(const Geometry& geometry, uint64_t item_count) {
    return double_hashing_error(geometry, item_count);
  }
};

}  // namespace core::bloom
