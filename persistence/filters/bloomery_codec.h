// SPDX-License-Identifier: MIT
//
// The stored form of our own layouts, whose layers are arrays of bits with a Geometry.
//
// Thread safety: pure functions; the filter needs its key's lock.
// Source: docs/formats.md, "Filters".
#pragma once

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

}  // namespace persistence
