// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_builder.h"

#include <fmt/format.h>

#include <array>
#include <cassert>

#include "core/bloom/layouts.h"
#include "core/bloom/window.h"
#include "persistence/bytes/module_value.h"
#include "persistence/bytes/stream_reader.h"
#include "persistence/filters/bit_array_codec.h"
#include "persistence/filters/layout_codec.h"

namespace persistence {
namespace {

using core::bloom::BitArray;
using core::bloom::Geometry;
using core::bloom::kMaxItemCount;

size_t layers_max(const core::bloom::FilterParameters& parameters) {
  if (parameters.window.is_set()) return core::bloom::Window::layers_max(parameters.window);
  return parameters.is_scaling() ? core::bloom::kMaxLayers : 1;
}

// Reads the bits of a layer. The stored array may be padded to whole words, but is no longer than
// the memory of the array.
bool fill(BitArray& bits, StringReader& array) {
  const uint64_t size = bits.bytes().size();
  if (array.size() < size || array.size() > bits.size_bytes()) return false;
  std::array<char, sizeof(uint64_t)> padding;
  const bool is_read =
      read_plain(array, bits, 0, size) && array.read(std::span(padding).first(array.size() - size));
  if (is_read) clear_spare_bits(bits.bytes(), bits.bit_count());
  return is_read;
}

}  // namespace

uint64_t stored_array_bytes(const Geometry& geometry) {
  return geometry.is_rounded ? geometry.size_bytes() : whole_bytes(geometry.bit_count);
}

void clear_spare_bits(std::span<std::byte> array, uint64_t bit_count) {
  const uint64_t used_bits = bit_count % 8;
  if (used_bits != 0) array.back() &= static_cast<std::byte>((1U << used_bits) - 1);
}

FilterBuilder::FilterBuilder(const core::MemoryBudget& budget)
    : budget_(budget), left_bytes_(budget.available_bytes()) {}

FilterBuilder::~FilterBuilder() = default;

void FilterBuilder::fail(std::string_view reason, core::ErrorCode code) {
  if (ok()) error_ = core::Error{std::string(reason), code};
  left_bytes_ = 0;
}

bool FilterBuilder::reserve(uint64_t size_bytes) {
  if (!ok()) return false;
  if (size_bytes > left_bytes_ || !budget_.fits(size_bytes)) {
    fail(kDoesNotFit, core::ErrorCode::kOutOfMemory);
    return false;
  }
  left_bytes_ -= size_bytes;
  return true;
}

std::optional<Geometry> FilterBuilder::checked_geometry(LayerClaim& claim) {
  const bool has_room = layers_.size() < layers_max(parameters);
  if (!has_room || !core::bloom::is_rate(claim.error_rate)) return std::nullopt;
  if (claim.capacity == 0 || claim.capacity > kMaxItemCount) return std::nullopt;
  const bool may_be_overfull =
      parameters.item_count_is_estimated && claim.item_count <= kMaxItemCount;
  if (claim.item_count > claim.capacity && !may_be_overfull) return std::nullopt;
  return layout_codec(parameters.layout).accept(claim, parameters, layers_);
}

std::optional<Geometry> FilterBuilder::accepted_geometry(LayerClaim& claim) {
  if (!ok()) return std::nullopt;
  const auto geometry = checked_geometry(claim);
  if (!geometry) {
    fail(fmt::format("ERR layer {} of the filter is not one that its layout has", layers_.size()));
  }
  return geometry;
}

bool FilterBuilder::add_layer(LayerClaim claim) {
  const auto geometry = accepted_geometry(claim);
  if (!geometry) return false;
  auto bits = allocate(geometry->bit_count);
  if (!bits) return false;
  layers_.push_back(
      {*geometry, claim.capacity, claim.item_count, claim.error_rate, std::move(*bits)});
  return true;
}

bool FilterBuilder::add_layer(const LayerClaim& claim, StringReader& array) {
  if (!add_layer(claim)) return false;
  if (!fill(layers_.back().bits, array)) fail(kDamagedBits);
  return ok();
}

bool FilterBuilder::add_layer_of_runs(const LayerClaim& claim, ModuleReader& runs) {
  if (!add_layer(claim)) return false;
  if (!read_runs(runs, layers_.back().bits)) fail(kDamagedBits);
  return ok();
}

bool FilterBuilder::add_layer(LayerClaim claim, BitArray bits) {
  const auto geometry = accepted_geometry(claim);
  if (!geometry) return false;
  assert(bits.bit_count() == geometry->bit_count);
  layers_.push_back(
      {*geometry, claim.capacity, claim.item_count, claim.error_rate, std::move(bits)});
  return true;
}

void FilterBuilder::set_item_count(uint64_t item_count) {
  if (!ok() || layers_.empty()) return;
  if (item_count > layers_.back().capacity) return fail("ERR a layer of the filter is overfull");
  layers_.back().item_count = item_count;
}

std::optional<BitArray> FilterBuilder::allocate(uint64_t bit_count) {
  if (!reserve((bit_count + 63) / 64 * 8 + core::bloom::kLayerBytes)) return std::nullopt;
  auto bits = BitArray::allocate(bit_count, core::bloom::array_sharing(parameters.layout));
  if (!bits) fail(kDoesNotFit, core::ErrorCode::kOutOfMemory);
  return bits;
}

core::Result<std::unique_ptr<core::bloom::ScalableFilter>> FilterBuilder::finish() {
  if (ok() && layers_.empty()) fail("ERR filter without layers");
  if (!ok()) return *error_;
  return core::bloom::ScalableFilter::assemble(parameters, std::move(layers_), window.get());
}

}  // namespace persistence
