// SPDX-License-Identifier: MIT
//
// FingerprintLayout: a table of short fingerprints, each item's in one of two buckets of one cache
// line each, so that items can be deleted without residue: a cuckoo filter.
//
// The contract: each removal may undo one insertion that answered kAdded. An item that was added so
// and not removed is never lost. Removing an item that was never added may take another's
// fingerprint; that is the caller's fault, and nobody else can notice it.
//
// Invariants: Geometry has the slots of a bucket in hash_count, the bits of a fingerprint in
// cell_bits and 2 in lines_per_lookup. A slot of zeros is free. Buckets i and j are a pair of
// fingerprint f when i + j = H(f) modulo their number, which is even while H(f) is odd, so that the
// two differ and each follows from the other. No pair holds a fingerprint twice: that would be the
// same item, as far as the table can tell, and it is there already.
// Thread safety: const access beside each other; insert, insert_new and remove need the array
// alone. Source: docs/bloom_math.md, "The fingerprints layout"; Fan, Andersen, Kaminsky,
// Mitzenmacher 2014, "Cuckoo Filter: Practically Better Than Bloom".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/arrays/fingerprint_table.h"
#include "core/bloom/fingerprint_kernels.h"
#include "core/bloom/hash.h"
#include "core/bloom/native_layout.h"
#include "core/bloom/parameters.h"

namespace core::bloom {

struct FingerprintLayout {
  // A fingerprint of 60 bits cannot tell more apart.
  static constexpr double kMinErrorRate = 0x1p-56;
  static constexpr LayoutRow kRow{.id = kDeletableLayout,
                                  .name = "fingerprints",
                                  .clears_bits = true,
                                  .has_fixed_hash = true,
                                  .takes_tightening = true,
                                  .min_error_rate = kMinErrorRate};
  static constexpr LayoutId kId = kRow.id;
  // Fingerprints that an insertion moves at most before it gives up.
  static constexpr unsigned kMovesMax = 500;

  static ItemHash hash(std::string_view item, const HashSettings& /*settings*/) {
    return hash_native(item);
  }

  static std::optional<Geometry> size(uint64_t capacity, double error_rate);
  static std::optional<LayerPlan> plan(const FilterParameters& /*parameters*/, uint64_t capacity,
                                       double error_rate) {
    return LayerPlan::of(capacity, error_rate, size(capacity, error_rate));
  }
  // The native series; 0 below kMinErrorRate.
  static double layer_error_rate(const FilterParameters& parameters, uint32_t index);
  static double next_error_rate(const FilterParameters& parameters, uint32_t index,
                                double /*last_rate*/) {
    return layer_error_rate(parameters, index);
  }
  static bool is_valid(const Geometry& geometry);
  static double predicted_error(const Geometry& geometry, uint64_t item_count);
  static uint64_t accounted_bytes(uint64_t layer_count, uint64_t bits_bytes) {
    return NativeLayout::accounted_bytes(layer_count, bits_bytes);
  }
  // Slots of the whole table.
  static uint64_t slot_count(const Geometry& geometry);

  // What the count of items tells already: deletions leave nothing behind.
  static double fill_now(const uint64_t* /*words*/, const Geometry& geometry, uint64_t item_count) {
    return static_cast<double>(item_count) / static_cast<double>(slot_count(geometry));
  }
  static double items_now(const uint64_t* /*words*/, const Geometry& /*geometry*/,
                          uint64_t item_count) {
    return static_cast<double>(item_count);
  }
  static double error_now(const uint64_t* /*words*/, const Geometry& geometry,
                          uint64_t item_count) {
    return predicted_error(geometry, item_count);
  }
  static double residue_now(const uint64_t* /*words*/, const Geometry& /*geometry*/,
                            uint64_t /*item_count*/) {
    return 0;
  }
  static double predicted_residue(const Geometry& /*geometry*/, double /*item_count*/) { return 0; }
  // Whether as many slots are taken as there are items, and no bit is set outside of the buckets.
  static bool is_sound(const BitArray& bits, const Geometry& geometry, uint64_t item_count);

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    with_fingerprint_table(words, geometry, [&](const auto& table) {
      table.prefetch(table.places_of(hash.first, hash.second));
    });
  }
  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    // Inline where it is little work.
    if (const auto table = narrow_table(words, geometry))
      return table->holds(table->places_of(hash.first, hash.second));
    return fingerprint_kernels().check(words, geometry, hash);
  }
  // Sets found[i] of the items that are in some array; items found already are not looked up.
  static void check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                          std::span<bool> found);

  static Insertion insert(uint64_t* words, const Geometry& geometry, uint64_t capacity,
                          ItemHash hash);
  static bool insert_new(uint64_t* words, const Geometry& geometry, uint64_t capacity,
                         ItemHash hash);
  static Removal remove(uint64_t* words, const Geometry& geometry, ItemHash hash) {
    if (const auto table = narrow_table(words, geometry)) {
      return table->free_slot(table->places_of(hash.first, hash.second)) ? Removal::kGone
                                                                         : Removal::kAbsent;
    }
    return fingerprint_kernels().remove(words, geometry, hash) ? Removal::kGone : Removal::kAbsent;
  }
  // The same for those whose outcome is kAbsent yet; returns how many it removed.
  static uint64_t remove_group(uint64_t* words, const Geometry& geometry,
                               std::span<const ItemHash> hashes, std::span<Removal> outcomes) {
    return fingerprint_kernels().remove_group(words, geometry, hashes, outcomes);
  }
};

}  // namespace core::bloom
