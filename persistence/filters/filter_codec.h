// SPDX-License-Identifier: MIT
//
// Encodes and decodes filters as module values, which is their form in snapshots and DUMP payloads.
//
// Invariants: a filter decoded from the output of encode_filter() has the same layers, bits and
// growth. Filters of the redisbloom layout are written as RedisBloom writes them (`MBbloom--` 4).
// Filters of the valkey-bloom layout are written as the module valkey-bloom writes them
// (`bloomfltr` 1). Native filters are written as `bloomery-`, native-2 filters as `bloomeryL`. The
// version is 3 if they have a window or an estimated count, otherwise 2 if some array is big,
// otherwise 1. Deletable filters are written as `bloomeryF` or `bloomeryR`. Encoding and decoding
// allocate no physical memory for pages of an array that were never touched.
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <memory>

#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_builder.h"

namespace persistence {

// Writes the module's id, the fields and the end mark. If `writer` has a ChunkedOutput, each array
// that forked processes share is read once, in order. Such an array is not compressed, because its
// bits may change during the call.
void encode_filter(ByteWriter& writer, const core::bloom::ScalableFilter& filter, Packing packing);

// Reads a payload after its type byte. The bits are read directly into the arrays. Errors: an
// unknown module, a newer encoding, fields that no filter can have, bits that disagree with their
// counts. The error is kDoesNotFit if the filter exceeds the budget. If the bytes ended early,
// reader.ok() is false.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_filter(
    StreamReader& reader, const core::MemoryBudget& budget);
// Decodes a filter of a snapshot, whose module id has already been read. Unlike decode_filter(),
// accepts bits that disagree with their counts, because a filter may be saved while it is being
// loaded in chunks.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_filter_of(
    uint64_t id, StreamReader& reader, const core::MemoryBudget& budget);
// Returns whether the arrays of all layers agree with the layers' item counts. Always returns true
// for a layout whose arrays do not determine the count.
bool is_sound(const core::bloom::ScalableFilter& filter, core::bloom::Loaded loaded);
// Returns whether values of this module are filters, in any version.
bool is_filter_module(uint64_t id);

}  // namespace persistence
