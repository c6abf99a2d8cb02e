// SPDX-License-Identifier: MIT
//
// Encodes and decodes filters of the layout valkey-bloom, in the form that the module valkey-bloom
// writes and reads.
//
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <optional>
#include <span>

#include "persistence/filters/filter_builder.h"
#include "persistence/filters/valkeybloom_blob.h"

namespace persistence {

class FilterWriter;
class ModuleReader;

void encode_valkeybloom(FilterWriter& out, const core::bloom::ScalableFilter& filter);
void decode_valkeybloom(ModuleReader& in, FilterBuilder& builder, unsigned version);
// Implements LayoutCodec::accept. Most stored forms omit the error rate of a layer, which is
// derived from the error rate of the filter. They also omit the item counts of older layers,
// because these layers are full.
std::optional<core::bloom::Geometry> accept_valkeybloom(
    LayerClaim& claim, core::bloom::FilterParameters& parameters,
    std::span<const core::bloom::LayerParts> earlier);

}  // namespace persistence
