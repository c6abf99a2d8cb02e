// SPDX-License-Identifier: MIT
//
// FingerprintLayout: a cuckoo filter, that is a table of short fingerprints. Each item's
// fingerprint is in one of two buckets, each of which lies within a cache line. Items can be
// deleted without residue.
//
// The contract: each removal may undo one insertion that returned kAdded. An item whose insertion
// returned kAdded is found until it is removed. Removing an item that was never added may remove
// another item's fingerprint. Callers must avoid this error, because the table cannot detect it.
//
// Invariants: in Geometry, hash_count is the number of slots per bucket, cell_bits the bits per
// fingerprint, and lines_per_lookup is 2. A slot of zeros is free. Buckets i and j are a pair for
// fingerprint f when i + j = H(f) modulo the number of buckets. That number is even and H(f) is
// odd, so the two buckets differ and each follows from the other. No pair holds a fingerprint
// twice, because the table cannot distinguish two items with the same pair and fingerprint.
// Thread safety: check() and check_group() may run in parallel; the functions that insert and
// remove need exclusive access to the array.
// Source: docs/bloom_math.md, "The fingerprints layout";
// Fan, Andersen, Kaminsky, Mitzenmacher 2014, "Cuckoo Filter: Practically Better Than Bloom".
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
  // The lowest error rate of a layer. A fingerprint of 60 bits suffices for it.
  static constexpr double kMinErrorRate = 0x1p-56;
  static constexpr LayoutRow kRow{.id = kFingerprintLayout,
                                  .name = "fingerprints",
                                  .clears_bits = true,
                                  .has_fixed_hash = true,
                                  .takes_tightening = true,
                                  .min_error_rate = kMinErrorRate};
  static constexpr LayoutId kId = kRow.id;
  // Maximum number of fingerprints that one insertion moves before it fails.
  static constexpr unsigned kMovesMax = 500;

  static ItemHash hash(std::string_view item, const HashSettings& /*settings*/) {
    return hash_native(item);
  }

  static std::optional<Geometry> size(uint64_t capacity, double error_rate);
  static std::optional<LayerPlan> plan(const FilterParameters& /*parameters*/, uint64_t capacity,
                                       double error_rate) {
    return LayerPlan::of(capacity, error_rate, size(capacity, error_rate));
  }
  // Returns the error rate that the native layout would give to layer `index`; 0 if this rate is
  // below kMinErrorRate.
  static double layer_error_rate(const FilterParameters& parameters, uint32_t index);
  static bool is_valid(const Geometry& geometry);
  static double predicted_error(const Geometry& geometry, uint64_t item_count);
  // Number of slots of the whole table.
  static uint64_t slot_count(const Geometry& geometry);

  // Ratio of used slots. Each item uses one slot, which its deletion frees. So the item count is
  // the number of used slots.
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
  static double flag_share_now(const uint64_t* /*words*/, const Geometry& /*geometry*/) {
    return 0;
  }
  static double residue_of(const Geometry& /*geometry*/, double /*flag_share*/) { return 0; }
  static double predicted_residue(const Geometry& /*geometry*/, double /*item_count*/) { return 0; }
  // True if no bit outside the buckets is set, and the number of used slots is `item_count` or 0.
  // In a partly loaded array any smaller number is possible, because the item count arrives before
  // the slots.
  static bool is_sound(const BitArray& bits, const Geometry& geometry, uint64_t item_count,
                       Loaded loaded);

  static void prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    with_fingerprint_table(words, geometry, [&](const auto& table) {
      table.prefetch(table.places_of(hash.first, hash.second));
    });
  }
  static bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    // The lookup is inlined for narrow buckets, because it takes few instructions.
    if (const auto table = narrow_table(words, geometry))
      return table->holds(table->places_of(hash.first, hash.second));
    return fingerprint_kernels().check(words, geometry, hash);
  }
  // Sets found[i] for each item that some array contains. Items with found[i] already set are
  // skipped.
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
  // Skips the items that were already removed from another layer. Tries to remove each other item,
  // whose outcome is still the initial kAbsent. Sets the outcome of each removed item to kGone, and
  // returns the number of these items.
  static uint64_t remove_group(uint64_t* words, const Geometry& geometry,
                               std::span<const ItemHash> hashes, std::span<Removal> outcomes) {
    return fingerprint_kernels().remove_group(words, geometry, hashes, outcomes);
  }
};

}  // namespace core::bloom
