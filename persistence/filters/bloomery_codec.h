// SPDX-License-Identifier: MIT
//
// Encodes and decodes filters of Bloomery's own layouts. A layer is a bit array with a Geometry.
//
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "persistence/filters/filter_builder.h"

namespace persistence {

class FilterWriter;
class ModuleReader;

// Version 1 stores filters without a big array. Version 2 stores big arrays as runs.
inline constexpr unsigned kBloomeryVersion = 1;
inline constexpr unsigned kBloomeryVersionWithRuns = 2;
// Version 3 adds a word of feature bits to version 2.
inline constexpr unsigned kBloomeryVersionWithFeatures = 3;

unsigned bloomery_version_of(const core::bloom::ScalableFilter& filter);
void encode_bloomery(FilterWriter& out, const core::bloom::ScalableFilter& filter);
void decode_bloomery(ModuleReader& in, FilterBuilder& builder, unsigned version);
bool take_bloomery_settings(const SettingsClaim& claim, core::bloom::FilterParameters& parameters);
std::optional<core::bloom::Geometry> accept_bloomery(
    LayerClaim& claim, core::bloom::FilterParameters& parameters,
    std::span<const core::bloom::LayerParts> earlier);

// LayerForm describes the encoding of the layers of Bloomery's own layouts, including the layouts
// with deletion (deletable_codec.h). `cells`: whether each layer stores its Geometry::cell_bits.
// `runs`: whether big arrays are stored as runs.
enum class Cells : uint8_t { kNone, kOfEachLayer };
enum class Runs : uint8_t { kNone, kOfBigArrays };
struct LayerForm {
  Cells cells = Cells::kNone;
  Runs runs = Runs::kNone;
};

void write_settings(FilterWriter& out, const core::bloom::ScalableFilter& filter);
// Returns the number of layers that the input claims.
uint64_t read_settings(ModuleReader& in, FilterBuilder& builder);
// Writes a big array as runs of bytes that are not zero.
void write_layers(FilterWriter& out, const core::bloom::ScalableFilter& filter, Cells cells);
void read_layers(ModuleReader& in, FilterBuilder& builder, uint64_t layer_count, LayerForm form);

}  // namespace persistence
