// SPDX-License-Identifier: MIT
#include "persistence/filters/bloomery_codec.h"

#include <limits>

#include "core/bloom/layouts.h"
#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_writer.h"
#include "persistence/filters/window_codec.h"

namespace persistence {

using core::bloom::BitArray;
using core::bloom::FilterParameters;
using core::bloom::Geometry;
using core::bloom::LayerParts;
using core::bloom::ScalableFilter;

namespace {

constexpr uint64_t kMaxHashCount = 2048;
constexpr uint64_t kRunsFromBytes = uint64_t{1} << 20;
// Arrays are written as runs exactly if they are mapped, because only mapped arrays can have
// untouched pages.
static_assert(kRunsFromBytes == BitArray::kMappedBytes);

// The feature bits of version 3. Unknown bits belong to later versions.
constexpr uint64_t kItemCountIsEstimated = 1;
constexpr uint64_t kHasWindow = 2;
constexpr uint64_t kKnownFeatures = kItemCountIsEstimated | kHasWindow;

// Returns whether the stored layers have Geometry::cell_bits, as those of layouts with deletion do.
bool has_cells(const FilterParameters& parameters) {
  return core::bloom::layout_row(parameters.layout).clears_bits;
}

bool has_runs(const LayerClaim& layer) {
  return layer.array_bytes >= kRunsFromBytes;
}

uint64_t features_of(const FilterParameters& parameters) {
  return (parameters.item_count_is_estimated ? kItemCountIsEstimated : 0) |
         (parameters.window.is_set() ? kHasWindow : 0);
}

// Reads the word of feature bits, and the data of the features, which follow in the order of the
// bits.
void read_features(ModuleReader& in, FilterBuilder& builder, uint64_t layer_count) {
  const uint64_t features = in.unsigned_number();
  if (features == 0 || (features & ~kKnownFeatures) != 0) return builder.fail(kDamagedFilter);
  builder.parameters.item_count_is_estimated = (features & kItemCountIsEstimated) != 0;
  if ((features & kHasWindow) == 0) return;
  decode_window([&in] { return in.unsigned_number(); }, layer_count, builder);
}

}  // namespace

unsigned bloomery_version_of(const ScalableFilter& filter) {
  if (features_of(filter.parameters()) != 0) return kBloomeryVersionWithFeatures;
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    if (filter.layer_bits(i).bytes().size() >= kRunsFromBytes) return kBloomeryVersionWithRuns;
  }
  return kBloomeryVersion;
}

void encode_bloomery(FilterWriter& out, const ScalableFilter& filter) {
  const FilterParameters parameters = filter.parameters();
  out.unsigned_number(filter.layer_count());
  out.unsigned_number(parameters.expansion);
  out.real_number(parameters.error_rate);
  out.real_number(parameters.tightening_ratio);
  if (const uint64_t features = features_of(parameters)) out.unsigned_number(features);
  if (parameters.window.is_set()) {
    for (const uint64_t number : encode_window(filter)) out.unsigned_number(number);
  }
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerClaim layer = claim_of(filter, i);
    out.unsigned_number(layer.capacity);
    out.unsigned_number(layer.item_count);
    out.real_number(layer.error_rate);
    out.unsigned_number(layer.bit_count);
    out.unsigned_number(layer.hash_count);
    out.unsigned_number(layer.lines_per_lookup);
    if (has_cells(parameters)) out.unsigned_number(layer.cell_bits);
    has_runs(layer) ? out.runs(filter, i) : out.array(filter, i);
  }
}

void decode_bloomery(ModuleReader& in, FilterBuilder& builder, unsigned version) {
  SettingsClaim claim;
  const uint64_t layer_count = in.unsigned_number();
  claim.expansion = in.unsigned_number();
  claim.error_rate = in.real_number();
  claim.tightening_ratio = in.real_number();
  if (!take_bloomery_settings(claim, builder.parameters)) builder.fail(kDamagedFilter);
  const bool is_deletable = has_cells(builder.parameters);
  const bool may_have_runs = is_deletable || version >= kBloomeryVersionWithRuns;
  if (version >= kBloomeryVersionWithFeatures) read_features(in, builder, layer_count);
  for (uint64_t i = 0; i < layer_count && in.ok() && builder.ok(); ++i) {
    LayerClaim layer;
    layer.capacity = in.unsigned_number();
    layer.item_count = in.unsigned_number();
    layer.error_rate = in.real_number();
    layer.bit_count = in.unsigned_number();
    layer.hash_count = in.unsigned_number();
    layer.lines_per_lookup = in.unsigned_number();
    if (is_deletable) layer.cell_bits = in.unsigned_number();
    layer.array_bytes = whole_bytes(layer.bit_count);
    if (may_have_runs && has_runs(layer)) {
      if (in.ok()) builder.add_layer_of_runs(layer, in);
      continue;
    }
    StringReader array = in.string();
    layer.array_bytes = array.size();
    if (in.ok()) builder.add_layer(layer, array);
  }
}

bool take_bloomery_settings(const SettingsClaim& claim, FilterParameters& parameters) {
  if (claim.expansion > std::numeric_limits<uint32_t>::max()) return false;
  parameters.expansion = static_cast<uint32_t>(claim.expansion);
  parameters.error_rate = claim.error_rate;
  // In the parameters, 0 stands for the layout's own tightening ratio.
  const bool is_own =
      claim.tightening_ratio == core::bloom::layout_row(parameters.layout).own_tightening;
  parameters.tightening_ratio = is_own ? 0 : claim.tightening_ratio;
  return true;
}

// Accepts stored bit counts from half to twice the planned count, because later versions may refine
// the model that computes the planned count. ScalableFilter::assemble() validates the geometry
// itself.
std::optional<Geometry> accept_bloomery(LayerClaim& claim, FilterParameters& parameters,
                                        std::span<const LayerParts> earlier) {
  if (core::bloom::layout_row(parameters.layout).takes_region_bits) {
    if (claim.cell_bits > core::bloom::kMaxRegionBits) return std::nullopt;
    if (earlier.empty()) parameters.region_bits = static_cast<uint8_t>(claim.cell_bits);
    if (claim.cell_bits != parameters.region_bits) return std::nullopt;
  }
  const auto expected = core::bloom::with_layout(parameters.layout, [&]<class Layout>() {
    return Layout::plan(parameters, claim.capacity, claim.error_rate);
  });
  if (!expected || claim.bit_count > BitArray::kMaxBits) return std::nullopt;
  const uint64_t expected_bits = expected->geometry.bit_count;
  if (claim.bit_count / 2 > expected_bits || claim.bit_count < expected_bits / 2) {
    return std::nullopt;
  }
  if (claim.hash_count > kMaxHashCount || claim.lines_per_lookup > 255) return std::nullopt;
  if (claim.cell_bits > std::numeric_limits<uint16_t>::max()) return std::nullopt;
  if (claim.array_bytes != whole_bytes(claim.bit_count)) return std::nullopt;
  return Geometry{.bit_count = claim.bit_count,
                  .hash_count = static_cast<uint16_t>(claim.hash_count),
                  .lines_per_lookup = static_cast<uint8_t>(claim.lines_per_lookup),
                  .cell_bits = static_cast<uint16_t>(claim.cell_bits)};
}

bool is_sound_deletable(const ScalableFilter& filter, size_t index, core::bloom::Loaded loaded) {
  return core::bloom::with_layout(filter.layout(), [&]<class Layout>() {
    if constexpr (core::bloom::DeletableLayout<Layout>) {
      const core::bloom::LayerInfo layer = filter.layer_info(index);
      return Layout::is_sound(filter.layer_bits(index), layer.geometry, layer.item_count, loaded);
    }
    return true;
  });
}

}  // namespace persistence
