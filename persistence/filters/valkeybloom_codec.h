// SPDX-License-Identifier: MIT
//
// Encodes and decodes filters of the layout valkey-bloom as the module valkey-bloom does. There are
// two forms: the module value, and the payload of BF.LOAD. Both store a layer as a blob, which
// consists of 45 bytes and the layer's bits.
//
// Invariants: all layers of a filter have the first layer's seed.
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "persistence/filters/filter_builder.h"

namespace persistence {

class FilterWriter;
class ModuleReader;

// Error texts of BF.LOAD.
inline constexpr std::string_view kLoadFailed = "ERR bloom object decoding failed";
inline constexpr std::string_view kLoadVersion =
    "ERR bloom object decoding failed. Unsupported version";

void encode_valkeybloom(FilterWriter& out, const core::bloom::ScalableFilter& filter);
void decode_valkeybloom(ModuleReader& in, FilterBuilder& builder, unsigned version);
// Validates the claimed settings and stores them in `parameters`. Returns false if no valkey-bloom
// filter has these settings.
bool take_valkeybloom_settings(const SettingsClaim& claim,
                               core::bloom::FilterParameters& parameters);
// Implements LayoutCodec::accept. Most stored forms omit the error rate of a layer, which is
// derived from the error rate of the filter. They also omit the item counts of older layers,
// because these layers are full.
std::optional<core::bloom::Geometry> accept_valkeybloom(
    LayerClaim& claim, core::bloom::FilterParameters& parameters,
    std::span<const core::bloom::LayerParts> earlier);

// Writes the payload of BF.LOAD in order, in pieces of about 64 KiB. Each byte of an array is read
// once. REQUIRES: the filter has the valkey-bloom layout.
using PieceWriter = std::function<void(std::string_view)>;
void write_load_payload(const core::bloom::ScalableFilter& filter, const PieceWriter& write);
uint64_t load_payload_bytes(const core::bloom::ScalableFilter& filter);
// Decodes the payload of BF.LOAD. Errors: messages of BF.LOAD; kDoesNotFit if the filter exceeds
// the memory budget.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_load_payload(
    std::string_view payload, const core::MemoryBudget& budget);

}  // namespace persistence
