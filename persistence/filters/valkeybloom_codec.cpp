// SPDX-License-Identifier: MIT
#include "persistence/filters/valkeybloom_codec.h"

#include <utility>

#include "core/bloom/valkeybloom_layout.h"
#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_writer.h"

namespace persistence {

using core::bloom::FilterParameters;
using core::bloom::Geometry;
using core::bloom::LayerParts;
using core::bloom::ScalableFilter;
using core::bloom::ValkeyBloomLayout;

void encode_valkeybloom(FilterWriter& out, const ScalableFilter& filter) {
  const FilterParameters parameters = filter.parameters();
  out.unsigned_number(filter.layer_count());
  out.unsigned_number(parameters.expansion);
  out.real_number(parameters.error_rate);
  out.real_number(tightening_ratio_of(parameters));
  out.unsigned_number(parameters.seed != core::bloom::kFixedSeed);
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    out.array_behind(encode_valkeybloom_blob_head(filter, i), filter, i);
    out.unsigned_number(filter.layer_info(i).capacity);
    // The item counts of older layers are not stored, because these layers are full.
    if (i + 1 == filter.layer_count()) out.unsigned_number(filter.layer_info(i).item_count);
  }
}

void decode_valkeybloom(ModuleReader& in, FilterBuilder& builder, unsigned /*version*/) {
  SettingsClaim claim;
  const uint64_t layer_count = in.unsigned_number();
  claim.expansion = in.unsigned_number();
  claim.error_rate = in.real_number();
  claim.tightening_ratio = in.real_number();
  claim.has_random_seed = in.unsigned_number();
  if (!take_valkeybloom_settings(claim, builder.parameters)) builder.fail(kDamagedFilter);
  for (uint64_t i = 0; i < layer_count && in.ok() && builder.ok(); ++i) {
    StringReader blob = in.string();
    if (!in.ok()) break;
    auto layer = read_valkeybloom_blob(builder, blob, {i == 0, claim.has_random_seed != 0});
    if (!layer) break;
    layer->claim.capacity = in.unsigned_number();
    layer->claim.item_count = i + 1 == layer_count ? in.unsigned_number() : layer->claim.capacity;
    layer->claim.error_rate = layer_error_rate(builder.parameters, static_cast<uint32_t>(i));
    if (in.ok()) builder.add_layer(layer->claim, std::move(layer->bits));
  }
}

std::optional<Geometry> accept_valkeybloom(LayerClaim& claim, FilterParameters& parameters,
                                           std::span<const LayerParts> earlier) {
  const double rate = layer_error_rate(parameters, static_cast<uint32_t>(earlier.size()));
  if (!is_close(claim.error_rate, rate)) return std::nullopt;
  claim.error_rate = rate;
  if (!earlier.empty() && earlier.back().item_count != earlier.back().capacity) return std::nullopt;
  const auto geometry =
      ValkeyBloomLayout::size_of(claim.capacity, claim.error_rate, claim.array_bytes);
  if (!geometry || claim.hash_count != geometry->hash_count) return std::nullopt;
  return geometry;
}

}  // namespace persistence
