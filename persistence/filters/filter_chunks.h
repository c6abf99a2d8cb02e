// SPDX-License-Identifier: MIT
//
// Encodes and decodes filters in pieces, which BF.SCANDUMP returns and BF.LOADCHUNK accepts. The
// first piece is a header. The bit arrays of all layers follow, divided into chunks. No chunk
// crosses the end of a layer.
//
// Invariants: the header of a redisbloom filter equals RedisBloom's, byte for byte. The headers of
// the other layouts have an options bit that RedisBloom rejects, and more fields at the end.
// Thread safety: pure functions; the caller holds the lock of the filter's key. load_chunk() needs
// the exclusive lock.
// Source: docs/formats.md, "Filters in chunks".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "persistence/filters/filter_builder.h"

namespace persistence {

inline constexpr uint64_t kMaxChunkBytes = uint64_t{16} << 20;

std::string encode_chunk_header(const core::bloom::ScalableFilter& filter);
// Returns the header of the filter as it was created: with its first layer and no items. REQUIRES:
// the filter has no window.
std::string encode_empty_chunk_header(const core::bloom::ScalableFilter& filter);
// Returns a filter with its counts but without its bits. Errors: a header that neither
// encode_chunk_header() nor RedisBloom writes; kDoesNotFit if the filter exceeds `budget`.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_chunk_header(
    std::string_view bytes, const core::MemoryBudget& budget);

// The iterator of a chunk is the position of the chunk's end plus one, which is 1 for the header. A
// rotation of a window drops the oldest layers, and the same position then means other bytes. So
// clients get a mark with the iterator if the filter has a window. The mark is the
// unit times 1 plus the remainder of the newest generation's ordinal by 8191. If the arrays of a
// window exceed the unit, iterators past it have a wrong mark and are rejected.
inline constexpr uint64_t kIteratorMarkUnit = uint64_t{1} << 40;
// Returns the mark, which must be added to an iterator; 0 if the filter has no window.
uint64_t iterator_mark(const core::bloom::ScalableFilter& filter);
// Removes the mark from a client's iterator. Returns nullopt if the filter has a window and the
// iterator has another mark or none.
std::optional<uint64_t> unmarked_iterator(const core::bloom::ScalableFilter& filter,
                                          uint64_t iterator);

// Returns the bytes at `position` of the arrays, at most kMaxChunkBytes; empty past the end. The
// result is a view of the filter or of `padded`.
std::string_view chunk_at(const core::bloom::ScalableFilter& filter, uint64_t position,
                          std::string& padded);

enum class ChunkOutcome : uint8_t { kLoaded, kPastTheEnd, kCrossesLayers, kUnsound };
// Whether load_chunk() checks the arrays. With kOfTheWhole, it accepts the last chunk of the last
// layer only if is_sound() accepts all arrays, as in decode_filter(). With kNone it checks no
// arrays, because a journal may contain a load that was never completed.
enum class ChunkCheck : uint8_t { kNone, kOfTheWhole };
// Overwrites the bytes at `position` of the arrays with a chunk. Any outcome but kLoaded leaves the
// filter unchanged.
ChunkOutcome load_chunk(core::bloom::ScalableFilter& filter, uint64_t position,
                        std::string_view bytes, ChunkCheck check = ChunkCheck::kNone);

}  // namespace persistence
