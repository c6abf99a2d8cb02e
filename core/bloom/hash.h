// SPDX-License-Identifier: MIT
//
// The 128-bit hash that each layout computes of an item, and from which it derives bit indices.
//
// Invariants: an ItemHash depends only on the item and the filter's hasher. It may be computed
// before the filter is locked and used for every layer.
// Thread safety: pure functions; concurrent reads of a value are safe.
// Source: XXH3 (xxHash 0.8); MurmurHash2 and MurmurHash64A (A. Appleby 2008, public domain);
// SipHash (Aumasson, Bernstein 2012), with 1 and 3 rounds.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/bloom/parameters.h"

namespace core::bloom {

struct ItemHash {
  uint64_t first = 0;
  uint64_t second = 0;
  bool operator==(const ItemHash&) const = default;
};

ItemHash hash_native(std::string_view item);
// A hash of 64 bits; ItemHash::second is 0.
ItemHash hash_lanes(std::string_view item);
ItemHash hash_redisbloom(std::string_view item);
ItemHash hash_redisbloom_32(std::string_view item);
// `keys` is the seed as four little-endian words.
ItemHash hash_valkeybloom(std::string_view item, const std::array<uint64_t, 4>& keys);

std::array<uint64_t, 4> seed_keys(const Seed& seed);

// Settings of a filter on which the hash of an item may depend.
struct HashSettings {
  bool is_32_bits = false;
  std::array<uint64_t, 4> keys{};
  bool operator==(const HashSettings&) const = default;
};

// Hashes items for a filter. A copy may outlive the filter.
class ItemHasher {
 public:
  ItemHasher(LayoutId layout, bool hashes_32_bits, const Seed& seed);
  // REQUIRES: the layout's hash of an item does not depend on the filter (has_fixed_hash).
  explicit ItemHasher(LayoutId layout) : layout_(layout) {}
  ItemHash operator()(std::string_view item) const;
  // Hashes many items. `hashes` is as long as `items`.
  void operator()(std::span<const std::string_view> items, std::span<ItemHash> hashes) const;
  // True if both hashers give the same hash for every item.
  bool operator==(const ItemHasher& other) const {
    return layout_ == other.layout_ &&
           (layout_row(layout_).has_fixed_hash || settings_ == other.settings_);
  }

 private:
  LayoutId layout_;
  HashSettings settings_;
};

}  // namespace core::bloom
