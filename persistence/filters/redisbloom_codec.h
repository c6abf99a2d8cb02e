// SPDX-License-Identifier: MIT
//
// The stored form of redisbloom filters, as RedisBloom writes and reads it.
//
// Thread safety: pure functions; the filter needs its key's lock.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "persistence/filters/filter_builder.h"

namespace persistence {

class FilterWriter;
class ModuleReader;

// Maximum of the options field, which chunk headers have too.
inline constexpr uint64_t kRedisBloomOptionsMax = 15;
// The largest factor that RedisBloom's BF.RESERVE accepts.
inline constexpr uint64_t kRedisBloomGrowthMax = 32768;
uint64_t redisbloom_options_of(const core::bloom::FilterParameters& parameters);
uint64_t redisbloom_growth_of(const core::bloom::FilterParameters& parameters);
// Returns false if no filter has these options and this growth.
bool read_redisbloom_options(uint64_t options, uint64_t growth,
                             core::bloom::FilterParameters& parameters);

void encode_redisbloom(FilterWriter& out, const core::bloom::ScalableFilter& filter);
void decode_redisbloom(ModuleReader& in, FilterBuilder& builder, unsigned version);
// The error rate of a filter is derived from its first layer.
std::optional<core::bloom::Geometry> accept_redisbloom(
    LayerClaim& claim, core::bloom::FilterParameters& parameters,
    std::span<const core::bloom::LayerParts> earlier);

}  // namespace persistence
