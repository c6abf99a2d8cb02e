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

// Reads what follows the type byte; the bits go straight into their final place. Errors: a module
// other than the three, a newer encoding, anything that no filter can be; kDoesNotFit when the
// budget refuses. When the bytes themselves ended or were damaged, !reader.ok().
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_filter(
    StreamReader& reader, const core::MemoryBudget& budget);
// The same when the module's id was read already.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> decode_filter_of(
    uint64_t id, StreamReader& reader, const core::MemoryBudget& budget);
// Whether values of this module are filters, in whatever version.
bool is_filter_module(uint64_t id);

// Bits of the options field of redisbloom filters; also in the header of BF.SCANDUMP.
namespace redisbloom_options {
inline constexpr uint64_t kNotRounded = 1;
inline constexpr uint64_t kHashes64Bits = 4;
inline constexpr uint64_t kNotScaling = 8;
inline constexpr uint64_t kAll = 15;
}  // namespace redisbloom_options

// The largest factor that RedisBloom's BF.RESERVE takes.
inline constexpr uint64_t kRedisBloomGrowthMax = 32768;
uint64_t redisbloom_options_of(const core::bloom::FilterParameters& parameters);
uint64_t redisbloom_growth_of(const core::bloom::FilterParameters& parameters);
// False when no filter has such options and growth.
bool read_redisbloom_options(uint64_t options, uint64_t growth,
                             core::bloom::FilterParameters& parameters);
// What a layer's file form says of it. REQUIRES: index < layer_count().
LayerClaim claim_of(const core::bloom::ScalableFilter& filter, size_t index);
// The array as it is stored; `padded` holds it where it is longer than the filter's own.
std::string_view stored_array(const core::bloom::ScalableFilter& filter, size_t index,
                              std::string& padded);

}  // namespace persistence
