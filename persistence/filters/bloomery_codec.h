// SPDX-License-Identifier: MIT
//
// Encodes and decodes filters of Bloomery's own layouts. A layer is a bit array with a Geometry.
// The layers of layouts with deletion, fingerprints and regions, also store Geometry::cell_bits.
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

// The versions of layouts without deletion. Version 1 stores filters without a big array. Version 2
// stores big arrays as runs.
inline constexpr unsigned kBloomeryVersion = 1;
inline constexpr unsigned kBloomeryVersionWithRuns = 2;
// Version 3 adds a word of feature bits to version 2.
inline constexpr unsigned kBloomeryVersionWithFeatures = 3;
// The only version of layouts with deletion stores big arrays as runs.
inline constexpr unsigned kDeletableVersion = 1;

unsigned bloomery_version_of(const core::bloom::ScalableFilter& filter);
void encode_bloomery(FilterWriter& out, const core::bloom::ScalableFilter& filter);
void decode_bloomery(ModuleReader& in, FilterBuilder& builder, unsigned version);
bool take_bloomery_settings(const SettingsClaim& claim, core::bloom::FilterParameters& parameters);
std::optional<core::bloom::Geometry> accept_bloomery(
    LayerClaim& claim, core::bloom::FilterParameters& parameters,
    std::span<const core::bloom::LayerParts> earlier);
// Returns whether adds and deletions can produce the layer's bits, all or partly loaded. REQUIRES:
// the layout supports deletion.
bool is_sound_deletable(const core::bloom::ScalableFilter& filter, size_t index,
                        core::bloom::Loaded loaded);

}  // namespace persistence
