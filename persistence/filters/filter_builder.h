// SPDX-License-Identifier: MIT
//
// FilterBuilder: the one way from bytes that are not trusted to a filter, whatever form they are
// in.
//
// A decoder tells what its bytes claim of each layer; the builder computes the layer's size anew
// from capacity and error rate, compares, asks the budget, and only then allocates.
//
// Invariants: a filter that comes out is one that its layout can make, but for the bits themselves;
// in every form that it can be written in it is accepted again, and the same. Therefore a layer is
// judged by what is written of it again, and nothing else is kept. Bits that no probe reaches are
// zero. After the first fault nothing is allocated any more.
// Thread safety: a value; it views the budget, which must outlive it.
// Source: docs/formats.md, "What is checked".
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "core/memory_budget.h"
#include "core/result.h"

namespace persistence {

class ModuleReader;
class StringReader;

// What is told of bytes that no filter has; the caller says where they stand.
inline constexpr std::string_view kDamagedFilter = "ERR damaged filter";
inline constexpr std::string_view kDamagedBits = "ERR the bits of the filter are damaged";

// The code of errors that are no fault of the bytes: they begin with it.
inline constexpr std::string_view kDoesNotFit = "OOM filter does not fit in memory";

// What bytes say of one layer. Fields that a layout does not store are left as they are.
struct LayerClaim {
  uint64_t capacity = 0;
  uint64_t item_count = 0;
  double error_rate = 0;
  uint64_t hash_count = 0;
  uint64_t bit_count = 0;
  uint64_t array_bytes = 0;
  double bits_per_item = 0;       // redisbloom
  uint64_t exponent = 0;          // redisbloom: log2 of the modulus of a rounded layer, else 0
  uint64_t lines_per_lookup = 0;  // native, fingerprints, regions
  uint64_t cell_bits = 0;         // fingerprints, regions
};

// What bytes say of a filter as a whole, not yet trusted.
struct SettingsClaim {
  uint64_t expansion = 0;
  double error_rate = 0;
  double tightening_ratio = 0;
  uint64_t has_random_seed = 0;  // valkey-bloom
};

// Whether two rates are the same on machines whose logarithms differ in their last digit.
inline bool is_close(double a, double b) {
  return std::fabs(a - b) <= core::bloom::kRateTolerance * b;
}

// Bytes of an array of so many bits.
inline uint64_t whole_bytes(uint64_t bit_count) {
  return (bit_count + 7) / 8;
}

// Bytes of a layer's array as files hold it: redisbloom's rounded ones are whole words.
uint64_t stored_array_bytes(const core::bloom::Geometry& geometry);

// Clears what the last byte has beyond the bits of an array.
void clear_spare_bits(std::span<std::byte> array, uint64_t bit_count);

class FilterBuilder {
 public:
  explicit FilterBuilder(const core::MemoryBudget& budget);
  ~FilterBuilder();
  FilterBuilder(const FilterBuilder&) = delete;
  FilterBuilder& operator=(const FilterBuilder&) = delete;

  // To be set before the first layer, but for what the layout takes from that.
  core::bloom::FilterParameters parameters;
  // With parameters.window, whose generations have as many layers as will be added.
  std::unique_ptr<const core::bloom::Window> window;

  bool ok() const { return !error_; }
  void fail(std::string_view reason);
  // False, and failed, when the budget does not allow so much more.
  bool reserve(uint64_t size_bytes);

  // Zeros to be read into. Nothing, and failed, when the budget or the system refuses them.
  // REQUIRES: bit_count <= core::bloom::BitArray::kMaxBits.
  std::optional<core::bloom::BitArray> allocate(uint64_t bit_count);
  // Adds a layer of zeros. False when it cannot be.
  bool add_layer(LayerClaim claim);
  // Adds a layer whose bits are read into their place.
  bool add_layer(const LayerClaim& claim, StringReader& array);
  // The same for bits that are stored as runs.
  bool add_layer_of_runs(const LayerClaim& claim, ModuleReader& runs);
  // Adds a layer with bits that came from allocate().
  bool add_layer(LayerClaim claim, core::bloom::BitArray bits);
  // Corrects the newest layer's, where it is stored behind the bits.
  void set_item_count(uint64_t item_count);
  // The filter, or the first fault.
  core::Result<std::unique_ptr<core::bloom::ScalableFilter>> finish();

 private:
  std::optional<core::bloom::Geometry> checked_geometry(LayerClaim& claim);
  // Puts what the encoder will write into `claim`, where forms differ.
  std::optional<core::bloom::Geometry> accepted_geometry(LayerClaim& claim);

  uint64_t left_bytes_;
  std::vector<core::bloom::LayerParts> layers_;
  std::optional<core::Error> error_;
};

}  // namespace persistence
