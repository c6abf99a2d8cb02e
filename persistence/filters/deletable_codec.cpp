// SPDX-License-Identifier: MIT
#include "persistence/filters/deletable_codec.h"

#include <limits>

#include "core/bloom/layouts.h"
#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_writer.h"

namespace persistence {

using core::bloom::BitArray;
using core::bloom::DeletableLayout;
using core::bloom::FilterParameters;
using core::bloom::Geometry;
using core::bloom::LayerParts;
using core::bloom::ScalableFilter;

namespace {

constexpr uint64_t kLongArrayBytes = BitArray::kMappedBytes;
static_assert(kLongArrayBytes == uint64_t{1} << 20, "the format names it");

bool is_stored_in_runs(const LayerClaim& layer) {
  return layer.array_bytes >= kLongArrayBytes;
}

}  // namespace

void encode_deletable(FilterWriter& out, const ScalableFilter& filter) {
  const FilterParameters parameters = filter.parameters();
  out.unsigned_number(filter.layer_count());
  out.unsigned_number(parameters.expansion);
  out.real_number(parameters.error_rate);
  out.real_number(parameters.tightening_ratio);
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerClaim layer = claim_of(filter, i);
    out.unsigned_number(layer.capacity);
    out.unsigned_number(layer.item_count);
    out.real_number(layer.error_rate);
    out.unsigned_number(layer.bit_count);
    out.unsigned_number(layer.hash_count);
    out.unsigned_number(layer.lines_per_lookup);
    out.unsigned_number(layer.cell_bits);
    if (is_stored_in_runs(layer)) {
      out.runs(filter, i);
    } else {
      out.array(filter, i);
    }
  }
}

void decode_deletable(ModuleReader& in, FilterBuilder& builder, unsigned /*version*/) {
  SettingsClaim claim;
  const uint64_t layer_count = in.unsigned_number();
  claim.expansion = in.unsigned_number();
  claim.error_rate = in.real_number();
  claim.tightening_ratio = in.real_number();
  if (!take_deletable_settings(claim, builder.parameters)) builder.fail(kDamagedFilter);
  for (uint64_t i = 0; i < layer_count && in.ok() && builder.ok(); ++i) {
    LayerClaim layer;
    layer.capacity = in.unsigned_number();
    layer.item_count = in.unsigned_number();
    layer.error_rate = in.real_number();
    layer.bit_count = in.unsigned_number();
    layer.hash_count = in.unsigned_number();
    layer.lines_per_lookup = in.unsigned_number();
    layer.cell_bits = in.unsigned_number();
    layer.array_bytes = whole_bytes(layer.bit_count);
    if (is_stored_in_runs(layer)) {
      if (in.ok()) builder.add_layer_of_runs(layer, in);
      continue;
    }
    StringReader array = in.string();
    layer.array_bytes = array.size();
    if (in.ok()) builder.add_layer(layer, array);
  }
}

bool take_deletable_settings(const SettingsClaim& claim, FilterParameters& parameters) {
  if (claim.expansion > std::numeric_limits<uint32_t>::max()) return false;
  parameters.expansion = static_cast<uint32_t>(claim.expansion);
  parameters.error_rate = claim.error_rate;
  parameters.tightening_ratio = claim.tightening_ratio;
  return true;
}

// Sizes are models that later versions may refine, so that only the order of magnitude is compared;
// ScalableFilter::assemble checks the shape itself.
std::optional<Geometry> accept_deletable(LayerClaim& claim, FilterParameters& parameters,
                                         std::span<const LayerParts> earlier) {
  const bool takes_regions = core::bloom::layout_row(parameters.layout).takes_region_bits;
  if (takes_regions && earlier.empty()) {
    if (claim.cell_bits > core::bloom::kMaxRegionBits) return std::nullopt;
    parameters.region_bits = static_cast<uint8_t>(claim.cell_bits);
  }
  if (takes_regions && claim.cell_bits != parameters.region_bits) return std::nullopt;
  const auto expected = core::bloom::with_layout(parameters.layout, [&]<class Layout>() {
    return Layout::plan(parameters, claim.capacity, claim.error_rate);
  });
  if (!expected || claim.bit_count > BitArray::kMaxBits) return std::nullopt;
  const uint64_t expected_bits = expected->geometry.bit_count;
  if (claim.bit_count / 2 > expected_bits || claim.bit_count < expected_bits / 2) {
    return std::nullopt;
  }
  constexpr uint64_t kDeletableHashesMax = 255;
  if (claim.hash_count > kDeletableHashesMax || claim.lines_per_lookup > 255) return std::nullopt;
  if (claim.cell_bits > std::numeric_limits<uint16_t>::max()) return std::nullopt;
  if (claim.array_bytes != whole_bytes(claim.bit_count)) return std::nullopt;
  Geometry geometry;
  geometry.bit_count = claim.bit_count;
  geometry.hash_count = static_cast<uint16_t>(claim.hash_count);
  geometry.lines_per_lookup = static_cast<uint8_t>(claim.lines_per_lookup);
  geometry.cell_bits = static_cast<uint16_t>(claim.cell_bits);
  const bool is_valid = core::bloom::with_layout(
      parameters.layout, [&]<class Layout>() { return Layout::is_valid(geometry); });
  return is_valid ? std::optional(geometry) : std::nullopt;
}

bool is_sound_deletable(const ScalableFilter& filter, size_t index) {
  return core::bloom::with_layout(filter.layout(), [&]<class Layout>() {
    if constexpr (DeletableLayout<Layout>) {
      const core::bloom::LayerInfo layer = filter.layer_info(index);
      return Layout::is_sound(filter.layer_bits(index), layer.geometry, layer.item_count);
    }
    return true;
  });
}

}  // namespace persistence
