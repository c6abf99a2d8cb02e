// SPDX-License-Identifier: MIT
//
// FilterBuilder: builds a filter from untrusted bytes, for the decoders of all stored forms. A
// stored form is one of the encodings of a filter: a module value, chunks, or the payload of
// BF.LOAD.
//
// A decoder passes claims: the values that its input states about each layer, not validated yet.
// The builder computes the layer's size from capacity and error rate, compares it with the claim,
// checks the budget, and only then allocates.
//
// Invariants: apart from the bits, the resulting filter is one that its layout can create. The
// filter can be written in any of its stored forms, and reading that form gives an equal filter. So
// a layer is validated only with fields that the encoder writes again, and no other field is kept.
// Bits that no probe reaches are zero. After the first fault nothing more is allocated.
// Thread safety: one thread at a time may use an object. The budget must outlive the builder.
// Source: docs/formats.md, "Checks".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"
#include "core/result.h"

namespace persistence {

class ModuleReader;
class StringReader;

// The messages of errors for bytes that do not describe a filter. The caller adds the position of
// these bytes.
inline constexpr std::string_view kDamagedFilter = "ERR damaged filter";
inline constexpr std::string_view kDamagedBits = "ERR the bits of the filter are damaged";

// The message of errors with the code kOutOfMemory.
inline constexpr std::string_view kDoesNotFit = "OOM filter does not fit in memory";

// The values that the input states about one layer. Fields that a layout does not store keep their
// defaults.
struct LayerClaim {
  uint64_t capacity = 0;
  uint64_t item_count = 0;
  double error_rate = 0;
  uint64_t hash_count = 0;
  uint64_t bit_count = 0;
  uint64_t array_bytes = 0;
  double bits_per_item = 0;       // used only by the layout redisbloom
  uint64_t exponent = 0;          // redisbloom: n if the modulus was rounded up to 2^n, else 0
  uint64_t lines_per_lookup = 0;  // by native, native-2, fingerprints and regions
  uint64_t cell_bits = 0;         // used by the layouts fingerprints and regions
};

// The values that the input states about a filter as a whole. They are not validated yet.
struct SettingsClaim {
  uint64_t expansion = 0;
  double error_rate = 0;
  double tightening_ratio = 0;
  uint64_t has_random_seed = 0;  // used only by the layout valkey-bloom
};

// Returns the number of bytes of an array of `bit_count` bits.
inline uint64_t whole_bytes(uint64_t bit_count) {
  return (bit_count + 7) / 8;
}

// Returns the number of bytes of a layer's array in its stored form. If the number of bits was
// rounded up to a power of two (redisbloom only), the stored array consists of whole 64-bit words.
uint64_t stored_array_bytes(const core::bloom::Geometry& geometry);

// Clears the bits of the last byte beyond `bit_count`.
void clear_spare_bits(std::span<std::byte> array, uint64_t bit_count);

class FilterBuilder {
 public:
  // `budget` must outlive the builder.
  explicit FilterBuilder(const core::MemoryBudget& budget);
  ~FilterBuilder();
  FilterBuilder(const FilterBuilder&) = delete;
  FilterBuilder& operator=(const FilterBuilder&) = delete;

  // The parameters must be set before the first layer, except values that the layout derives from
  // that layer.
  core::bloom::FilterParameters parameters;
  // The window must be set if parameters.window is set. The caller must add exactly as many layers
  // as the generations of the window have in total.
  std::unique_ptr<const core::bloom::Window> window;

  bool ok() const { return !error_; }
  void fail(std::string_view reason, core::ErrorCode code = core::ErrorCode::kDamaged);
  // Returns false, and the builder fails, if the budget does not allow another `size_bytes` bytes.
  bool reserve(uint64_t size_bytes);

  // Returns zeroed bits to read into. Returns nullopt, and the builder fails, if the budget or the
  // system refuses the memory. REQUIRES: bit_count <= core::bloom::BitArray::kMaxBits.
  std::optional<core::bloom::BitArray> allocate(uint64_t bit_count);
  // Adds a layer of zeros. If that is impossible, the builder fails and false is returned.
  bool add_layer(LayerClaim claim);
  // Adds a layer and reads its bits directly into the array.
  bool add_layer(const LayerClaim& claim, StringReader& array);
  // Adds a layer whose bits are stored as runs.
  bool add_layer_of_runs(const LayerClaim& claim, ModuleReader& runs);
  // Adds a layer with bits from allocate().
  bool add_layer(LayerClaim claim, core::bloom::BitArray bits);
  // Sets the newest layer's item count, for stored forms that have this count after the bits.
  void set_item_count(uint64_t item_count);
  // Returns the filter, or the first error.
  core::Result<std::unique_ptr<core::bloom::ScalableFilter>> finish();

 private:
  std::optional<core::bloom::Geometry> checked_geometry(LayerClaim& claim);
  // Validates `claim` and returns the layer's geometry. Some layouts compute the error rate of each
  // layer. The computed rate then replaces the rate in `claim`.
  std::optional<core::bloom::Geometry> accepted_geometry(LayerClaim& claim);

  const core::MemoryBudget& budget_;
  uint64_t left_bytes_;
  std::vector<core::bloom::LayerParts> layers_;
  std::optional<core::Error> error_;
};

}  // namespace persistence
