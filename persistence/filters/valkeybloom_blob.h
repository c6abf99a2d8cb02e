// SPDX-License-Identifier: MIT
//
// Encodes and decodes layers of valkey-bloom filters in that module's stored form, and the payload
// of BF.LOAD, which consists of such layers.
//
// Invariants: all layers of a filter have the first layer's seed.
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "persistence/filters/filter_builder.h"

namespace persistence {

// Error texts of BF.LOAD.
inline constexpr std::string_view kLoadFailed = "ERR bloom object decoding failed";
inline constexpr std::string_view kLoadVersion =
    "ERR bloom object decoding failed. Unsupported version";

// Validates the claimed settings and stores them in `parameters`. Returns false if no valkey-bloom
// filter has these settings.
bool take_valkeybloom_settings(const SettingsClaim& claim,
                               core::bloom::FilterParameters& parameters);

// Returns the 45 bytes that precede a layer's bits. These bytes and the bits form the blob.
std::string encode_valkeybloom_blob_head(const core::bloom::ScalableFilter& filter, size_t index);

struct SeedRules {
  bool is_first_layer = false;  // if true, the seed of the layer becomes the filter's seed
  bool may_be_random = false;
};
// The layer that a blob describes. `claim` has only array size and hash count, because the blob has
// no other properties, such as the capacity.
struct ValkeyBloomLayer {
  LayerClaim claim;
  core::bloom::BitArray bits;
};
// Reads a layer from its blob. The caller adds the layer to `builder`. If the blob is damaged or
// does not fit in memory, `builder` fails and nullopt is returned.
std::optional<ValkeyBloomLayer> read_valkeybloom_blob(FilterBuilder& builder, StringReader& blob,
                                                      SeedRules rules);

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
