// SPDX-License-Identifier: MIT
//
// DoubleHashing: marking and checking over a sequence of bit indices that two hashes span, as the
// layouts of RedisBloom and valkey-bloom do, and their common error formula.
//
// Thread safety: check() may run beside check(); mark() needs the array to itself.
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

// Error rate of `item_count` items in a classic array, with the chance that a double-hashed item
// repeats another's whole sequence.
double double_hashing_error(const Geometry& geometry, uint64_t item_count);

// Probes is a type with `Probes(hash, geometry)` and `uint64_t next()`, the next bit index.
template <class Probes>
struct DoubleHashing {
  // Bits of a sequence worth fetching ahead: an absent item seldom needs more.
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

  // Sets found[i] of the items that are in some array; items found already are not looked up.
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

  // True when some bit was clear before.
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
