// SPDX-License-Identifier: MIT
//
// Encodes and decodes filters of the layouts with deletion: fingerprints and regions.
//
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <optional>
#include <span>

#include "persistence/filters/filter_builder.h"

namespace persistence {

class FilterWriter;
class ModuleReader;

inline constexpr unsigned kDeletableVersion = 1;

void encode_deletable(FilterWriter& out, const core::bloom::ScalableFilter& filter);
void decode_deletable(ModuleReader& in, FilterBuilder& builder, unsigned version);
std::optional<core::bloom::Geometry> accept_deletable(
    LayerClaim& claim, core::bloom::FilterParameters& parameters,
    std::span<const core::bloom::LayerParts> earlier);
// Returns whether adds and deletions can produce the layer's bits.
bool is_sound_deletable(const core::bloom::ScalableFilter& filter, size_t index);

}  // namespace persistence
