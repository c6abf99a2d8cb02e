// SPDX-License-Identifier: MIT
//
// Encodes and decodes filters of the layout redisbloom, in the form that the module RedisBloom
// writes and reads.
//
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "persistence/filters/filter_builder.h"

namespace persistence {

class FilterWriter;
class ModuleReader;

// The maximum value of the options field, which both module values and chunk headers contain.
inline constexpr uint64_t kRedisBloomOptionsMax = 15;
// The largest growth factor (EXPANSION) that the format can store. RedisBloom accepted each of them
// until Redis 8, which limits BF.RESERVE to 32768.
inline constexpr uint64_t kRedisBloomGrowthMax = std::numeric_limits<uint32_t>::max();
uint64_t redisbloom_options_of(const core::bloom::FilterParameters& parameters);
uint64_t redisbloom_growth_of(const core::bloom::FilterParameters& parameters);
// Stores options and growth in the parameters. Returns false if no redisbloom filter has this
// combination.
bool read_redisbloom_options(uint64_t options, uint64_t growth,
                             core::bloom::FilterParameters& parameters);

void encode_redisbloom(FilterWriter& out, const core::bloom::ScalableFilter& filter);
void decode_redisbloom(ModuleReader& in, FilterBuilder& builder, unsigned version);
// Returns whether the filter has a layer whose number of bits is no multiple of 64, as RedisBloom
// before 2.2 made them. Current releases of RedisBloom reject such a filter, and with it the whole
// snapshot.
bool has_partial_words(const core::bloom::ScalableFilter& filter);
// Validates the values that the input states about a layer. Returns the layer's geometry, or
// nullopt if the values are invalid. Derives the filter's error rate from its first layer.
std::optional<core::bloom::Geometry> accept_redisbloom(
    LayerClaim& claim, core::bloom::FilterParameters& parameters,
    std::span<const core::bloom::LayerParts> earlier);

}  // namespace persistence
