// SPDX-License-Identifier: MIT
//
// Layers of valkey-bloom filters as that module stores them, and the payload of BF.LOAD made of
// them.
//
// Invariants: all layers of a filter have the first one's seed.
// Thread safety: pure functions; the filter needs its key's lock.
// Source: docs/formats.md, "Filters".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "persistence/filters/filter_builder.h"

namespace persistence {

// False when no filter can be so.
bool take_valkeybloom_settings(const SettingsClaim& claim,
                               core::bloom::FilterParameters& parameters);

// The 45 bytes before a layer's bits; both together are its blob.
std::string encode_valkeybloom_blob_head(const core::bloom::ScalableFilter& filter, size_t index);

struct SeedRules {
  bool is_first_layer = false;  // its seed becomes the filter's
  bool may_be_random = false;
};
// What a blob says of a layer: its array's size and its hash count; the capacity stands elsewhere.
struct ValkeyBloomLayer {
  LayerClaim claim;
  core::bloom::BitArray bits;
};
// Nothing, and `builder` failed, when the blob is damaged or does not fit.
std::optional<ValkeyBloomLayer> read_valkeybloom_blob(FilterBuilder& builder, StringReader& blob,
                                                      SeedRules rules);

// The payload of BF.LOAD, in pieces of about 64 KiB, in order; each byte of an array is read
// once. REQUIRES: a filter of the valkey-bloom layout.
using PieceWriter = std::function<void(std::string_view)>;
void write_load_payload(const core::bloom::ScalableFilter& filter, const PieceWriter& write);
uint64_t load_payload_bytes(const core::bloom::ScalableFilter& filter);
// Errors: texts of that command; kDoesNotFit when the budget refuses.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_load_payload(
    std::string_view payload, const core::MemoryBudget& budget);

}  // namespace persistence
