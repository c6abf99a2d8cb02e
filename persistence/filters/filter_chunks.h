// SPDX-License-Identifier: MIT
//
// Filters in pieces, as BF.SCANDUMP gives them and BF.LOADCHUNK takes them: a header, and the bit
// arrays of all layers in a row, cut into chunks of which none crosses the end of a layer.
//
// Invariants: the header of a redisbloom filter is RedisBloom's, byte for byte. The other layouts
// use the same header with an options bit that RedisBloom refuses, and a few bytes more.
// Thread safety: pure functions; the filter needs its key's lock, exclusive for load_chunk.
// Source: docs/formats.md, "Filters in chunks".
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "persistence/filters/filter_builder.h"

namespace persistence {

inline constexpr uint64_t kMaxChunkBytes = uint64_t{16} << 20;

std::string encode_chunk_header(const core::bloom::ScalableFilter& filter);
// The header of the filter as it was made: with its first layer, and without items.
// REQUIRES: no window.
std::string encode_empty_chunk_header(const core::bloom::ScalableFilter& filter);
// A filter with its counts but without its bits. Errors: anything that encode_chunk_header or
// RedisBloom cannot have written; kDoesNotFit when the budget refuses.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_chunk_header(
    std::string_view bytes, const core::MemoryBudget& budget);

// What lies at `position` of the arrays, at most kMaxChunkBytes; empty past the end. It views the
// filter or `padded`.
std::string_view chunk_at(const core::bloom::ScalableFilter& filter, uint64_t position,
                          std::string& padded);

enum class ChunkOutcome : uint8_t { kLoaded, kPastTheEnd, kCrossesLayers, kUnsound };
// With kOfTheWhole, is_sound() must accept the arrays after the chunk that ends the last one, as in
// decode_filter(). With kNone nothing is checked: a journal may hold a load that had not ended.
enum class ChunkCheck : uint8_t { kNone, kOfTheWhole };
// Writes a chunk over what lies at `position`. Any outcome but kLoaded leaves the filter unchanged.
ChunkOutcome load_chunk(core::bloom::ScalableFilter& filter, uint64_t position,
                        std::string_view bytes, ChunkCheck check = ChunkCheck::kNone);

}  // namespace persistence
