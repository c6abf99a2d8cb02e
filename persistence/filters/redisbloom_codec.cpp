// SPDX-License-Identifier: MIT
#include "persistence/filters/redisbloom_codec.h"

#include <algorithm>
#include <cmath>

#include "core/bloom/redisbloom_layout.h"
#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_writer.h"

namespace persistence {

using core::bloom::FilterParameters;
using core::bloom::Geometry;
using core::bloom::LayerParts;
using core::bloom::RedisBloomLayout;
using core::bloom::ScalableFilter;

namespace {

// The bits of the options field.
constexpr uint64_t kNotRounded = 1;
constexpr uint64_t kHashes64Bits = 4;
constexpr uint64_t kNotScaling = 8;
// The first versions of RedisBloom's format that store the bit count, the options and the growth.
constexpr unsigned kSinceBits = 1;
constexpr unsigned kSinceOptions = 2;
constexpr unsigned kSinceGrowth = 4;

// Returns the geometry of a layer whose modulus is 2^exponent; nullopt if the claim contradicts
// this modulus. The writer first rounded the size in bits up to 2^exponent. Then it raised the
// capacity by the number of items that fit into the added bits. So the capacity needs at most
// 2^exponent bits, and at least 2^exponent / 2 bits minus the bits of one item.
std::optional<Geometry> rounded_geometry(const LayerClaim& claim, double per_item,
                                         Geometry geometry) {
  constexpr uint64_t kExponentMax = 54;
  if (claim.exponent > kExponentMax) return std::nullopt;
  geometry.bit_count = uint64_t{1} << claim.exponent;
  geometry.is_rounded = true;
  const double wanted = static_cast<double>(claim.capacity) * per_item;
  const double modulus = static_cast<double>(geometry.bit_count);
  const bool wants_it =
      wanted <= modulus * (1 + core::bloom::kRateTolerance) && wanted >= modulus / 2 - per_item - 1;
  // Releases before 2.2 stored 0 as the bit count.
  const bool counts_agree = claim.bit_count == 0 || claim.bit_count == geometry.bit_count ||
                            claim.bit_count == geometry.size_bytes() * 8;
  const bool sizes_agree = claim.array_bytes == geometry.size_bytes() ||
                           claim.array_bytes == whole_bytes(geometry.bit_count);
  if (!wants_it || !counts_agree || !sizes_agree) return std::nullopt;
  return geometry;
}

uint64_t words_of(uint64_t bit_count) {
  return (bit_count + 63) / 64 * 64;
}

// The stored bit count is validated only with capacity, error rate and hash count. The encoder
// writes these three fields unchanged, so a layer that was accepted once is always accepted.
std::optional<Geometry> redisbloom_geometry(const LayerClaim& claim, bool may_be_rounded) {
  const auto per_item = RedisBloomLayout::bits_per_item(claim.error_rate, claim.hash_count);
  if (!per_item || !core::bloom::is_close(claim.bits_per_item, *per_item)) return std::nullopt;
  auto geometry = RedisBloomLayout::size_with(claim.capacity, *per_item);
  if (!geometry) return std::nullopt;
  if (claim.exponent != 0) {
    return may_be_rounded ? rounded_geometry(claim, *per_item, *geometry) : std::nullopt;
  }
  const double wanted = static_cast<double>(claim.capacity) * *per_item;
  const auto bits_of = [](double bits) { return static_cast<uint64_t>(std::max(1.0, bits)); };
  const uint64_t least = bits_of(wanted * (1 - core::bloom::kRateTolerance));
  const uint64_t most = bits_of(wanted * (1 + core::bloom::kRateTolerance));
  // RedisBloom before 2.2 did not round the number of bits up to a multiple of 64.
  const bool is_exact = claim.bit_count >= least && claim.bit_count <= most;
  const bool is_whole_words = claim.bit_count % 64 == 0 && claim.bit_count >= words_of(least) &&
                              claim.bit_count <= words_of(most);
  if (!is_exact && !is_whole_words) return std::nullopt;
  geometry->bit_count = claim.bit_count;
  const bool sizes_agree = claim.array_bytes == geometry->size_bytes() ||
                           claim.array_bytes == whole_bytes(claim.bit_count);
  return sizes_agree ? geometry : std::nullopt;
}

// Returns the error rate that was requested for the filter. If the filter may grow, RedisBloom
// gives half of this rate to the first layer.
double redisbloom_rate(const FilterParameters& parameters, double first_layer_rate) {
  if (!parameters.is_scaling()) return first_layer_rate;
  return std::min(2 * first_layer_rate, std::nextafter(1.0, 0.0));
}

LayerClaim read_redisbloom_layer(ModuleReader& in, unsigned version) {
  LayerClaim layer;
  layer.capacity = in.unsigned_number();
  layer.error_rate = in.real_number();
  layer.hash_count = in.unsigned_number();
  layer.bits_per_item = in.real_number();
  if (version >= kSinceBits) {
    layer.bit_count = in.unsigned_number();
    layer.exponent = in.unsigned_number();
    return layer;
  }
  const double bits = static_cast<double>(layer.capacity) * layer.bits_per_item;
  const bool has_number = bits >= 1 && bits < 0x1p63;
  if (has_number) layer.bit_count = static_cast<uint64_t>(bits);
  return layer;
}

}  // namespace

uint64_t redisbloom_options_of(const FilterParameters& parameters) {
  return (parameters.rounds_to_power_of_two ? 0 : kNotRounded) |
         (parameters.hashes_32_bits ? 0 : kHashes64Bits) |
         (parameters.is_scaling() ? 0 : kNotScaling);
}

uint64_t redisbloom_growth_of(const FilterParameters& parameters) {
  return parameters.is_scaling() ? parameters.expansion : parameters.idle_growth;
}

bool read_redisbloom_options(uint64_t options, uint64_t growth, FilterParameters& parameters) {
  const bool is_scaling = (options & kNotScaling) == 0;
  if (options > kRedisBloomOptionsMax || growth > kRedisBloomGrowthMax ||
      (is_scaling && growth == 0))
    return false;
  parameters.rounds_to_power_of_two = (options & kNotRounded) == 0;
  parameters.hashes_32_bits = (options & kHashes64Bits) == 0;
  parameters.expansion = is_scaling ? static_cast<uint32_t>(growth) : 0;
  if (!is_scaling) parameters.idle_growth = static_cast<uint32_t>(growth);
  return true;
}

void encode_redisbloom(FilterWriter& out, const ScalableFilter& filter) {
  const FilterParameters parameters = filter.parameters();
  out.unsigned_number(filter.item_count());
  out.unsigned_number(filter.layer_count());
  out.unsigned_number(redisbloom_options_of(parameters));
  out.unsigned_number(redisbloom_growth_of(parameters));
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerClaim layer = claim_of(filter, i);
    out.unsigned_number(layer.capacity);
    out.real_number(layer.error_rate);
    out.unsigned_number(layer.hash_count);
    out.real_number(layer.bits_per_item);
    out.unsigned_number(layer.bit_count);
    out.unsigned_number(layer.exponent);
    out.array(filter, i);
    out.unsigned_number(layer.item_count);
  }
}

void decode_redisbloom(ModuleReader& in, FilterBuilder& builder, unsigned version) {
  in.unsigned_number();  // skips the total item count, which is the sum over all layers
  const uint64_t layer_count = in.unsigned_number();
  const uint64_t options = version >= kSinceOptions ? in.unsigned_number() : 0;
  const uint64_t growth = version >= kSinceGrowth ? in.unsigned_number() : 2;
  if (!read_redisbloom_options(options, growth, builder.parameters)) builder.fail(kDamagedFilter);
  for (uint64_t i = 0; i < layer_count && in.ok() && builder.ok(); ++i) {
    LayerClaim layer = read_redisbloom_layer(in, version);
    StringReader array = in.string();
    layer.array_bytes = array.size();
    if (in.ok() && builder.add_layer(layer, array)) builder.set_item_count(in.unsigned_number());
  }
}

bool has_partial_words(const ScalableFilter& filter) {
  if (filter.layout() != RedisBloomLayout::kId) return false;
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerClaim layer = claim_of(filter, i);
    if (layer.bit_count != layer.array_bytes * 8) return true;
  }
  return false;
}

std::optional<Geometry> accept_redisbloom(LayerClaim& claim, FilterParameters& parameters,
                                          std::span<const LayerParts> earlier) {
  if (earlier.empty()) parameters.error_rate = redisbloom_rate(parameters, claim.error_rate);
  return redisbloom_geometry(claim, parameters.rounds_to_power_of_two);
}

}  // namespace persistence
