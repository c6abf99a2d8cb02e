// SPDX-License-Identifier: MIT
#include "persistence/filters/deletable_codec.h"

#include "core/bloom/layouts.h"
#include "persistence/bytes/module_value.h"
#include "persistence/filters/bloomery_codec.h"
#include "persistence/filters/filter_writer.h"

namespace persistence {

using core::bloom::DeletableLayout;
using core::bloom::FilterParameters;
using core::bloom::Geometry;
using core::bloom::LayerParts;
using core::bloom::ScalableFilter;

void encode_deletable(FilterWriter& out, const ScalableFilter& filter) {
  write_settings(out, filter);
  write_layers(out, filter, Cells::kOfEachLayer);
}

void decode_deletable(ModuleReader& in, FilterBuilder& builder, unsigned /*version*/) {
  const uint64_t layer_count = read_settings(in, builder);
  read_layers(in, builder, layer_count, {Cells::kOfEachLayer, Runs::kOfBigArrays});
}

std::optional<Geometry> accept_deletable(LayerClaim& claim, FilterParameters& parameters,
                                         std::span<const LayerParts> earlier) {
  if (core::bloom::layout_row(parameters.layout).takes_region_bits) {
    if (claim.cell_bits > core::bloom::kMaxRegionBits) return std::nullopt;
    if (earlier.empty()) parameters.region_bits = static_cast<uint8_t>(claim.cell_bits);
    if (claim.cell_bits != parameters.region_bits) return std::nullopt;
  }
  return accept_bloomery(claim, parameters, earlier);
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
