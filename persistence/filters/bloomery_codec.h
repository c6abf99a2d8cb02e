// SPDX-License-Identifier: MIT
//
// The stored form of our own layouts, whose layers are arrays of bits with a Geometry.
//
// Thread safety: pure functions; the filter needs its key's lock.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "persistence/filters/filter_builder.h"

namespace persistence {

class FilterWriter;
class ModuleReader;

// Filters without a big array; big ones are stored as runs.
inline constexpr unsigned kBloomeryVersion = 1;
inline constexpr unsigned kBloomeryVersionWithRuns = 2;
// As that one, with a word that tells what else the filter has.
inline constexpr unsigned kBloomeryVersionWithFeatures = 3;

unsigned bloomery_version_of(const core::bloom::ScalableFilter& filter);
void encode_bloomery(FilterWriter& out, const core::bloom::ScalableFilter& filter);
void decode_bloomery(ModuleReader& in, FilterBuilder& builder, unsigned version);
bool take_bloomery_settings(const SettingsClaim& claim, core::bloom::FilterParameters& parameters);
std::optional<core::bloom::Geometry> accept_bloomery(
    LayerClaim& claim, core::bloom::FilterParameters& parameters,
    std::span<const core::bloom::LayerParts> earlier);

// What the forms of all our own layouts share, also those that delete (deletable_codec.h).
// Whether a layer states its Geometry::cell_bits.
enum class Cells : uint8_t { kNone, kOfEachLayer };
enum class Runs : uint8_t { kNone, kOfBigArrays };
struct LayerForm {
  Cells cells = Cells::kNone;
  Runs runs = Runs::kNone;
};

void write_settings(FilterWriter& out, const core::bloom::ScalableFilter& filter);
// Returns how many layers are claimed.
uint64_t read_settings(ModuleReader& in, FilterBuilder& builder);
// Big arrays as runs.
void write_layers(FilterWriter& out, const core::bloom::ScalableFilter& filter, Cells cells);
void read_layers(ModuleReader& in, FilterBuilder& builder, uint64_t layer_count, LayerForm form);

}  // namespace persistence
