// SPDX-License-Identifier: MIT
//
// Filters as module values, the form they have in snapshots and DUMP payloads.
//
// Invariants: a filter decoded from what encode_filter wrote has the same layers, bits and growth.
// redisbloom filters are written as RedisBloom would (`MBbloom--` 4), valkey-bloom ones as that
// module would (`bloomfltr` 1), native ones as `bloomery-` 1, or 2 when some array is big. Pages
// that were never touched stay so, in the filter and in the one that is read.
// Thread safety: pure functions; the filter needs its key's lock.
// Source: docs/formats.md, "Filters".
#pragma once

#include <memory>

#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_builder.h"

namespace persistence {

// Writes the module's id, the fields and the end mark. Arrays that forked processes share are read
// once, in order, and never packed when `writer` writes to chunks: their bits may change meanwhile.
void encode_filter(ByteWriter& writer, const core::bloom::ScalableFilter& filter, Packing packing);

// Reads a payload behind its type byte; the bits go straight into their final place. Errors: an
// unknown module, a newer encoding, anything that no filter can be; kDoesNotFit when the budget
// refuses. When the bytes themselves ended or were damaged, !reader.ok().
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_filter(
    StreamReader& reader, const core::MemoryBudget& budget);
// The same behind the module's id, in a snapshot: bits that disagree with their counts are taken
// there, as a filter has them that was saved while it was being loaded in chunks.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_filter_of(
    uint64_t id, StreamReader& reader, const core::MemoryBudget& budget);
// Whether the arrays of all layers agree with their counts. A layout whose arrays tell nothing of
// counts is always sound.
bool is_sound(const core::bloom::ScalableFilter& filter);
// Whether values of this module are filters, in whatever version.
bool is_filter_module(uint64_t id);

}  // namespace persistence
