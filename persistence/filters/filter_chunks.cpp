// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_chunks.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "persistence/filters/bit_array_codec.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/filters/valkeybloom_blob.h"

namespace persistence {
namespace {

using core::bloom::FilterParameters;
using core::bloom::LayoutId;
using core::bloom::ScalableFilter;

// Our own options bits, beyond RedisBloom's.
constexpr uint64_t kNativeOption = 16;
constexpr uint64_t kValkeyBloomOption = 32;

constexpr uint64_t kHeadBytes = 20;
constexpr uint64_t kLayerBytes = 53;
constexpr uint64_t kSeedBytes = std::tuple_size_v<core::bloom::Seed>;
// Behind the layers of the layouts that are not redisbloom: error rate and tightening ratio.
constexpr uint64_t kTailBytes = 16;
// Releases up to 2.2 had 32-bit capacities, and before that no growth.
constexpr uint64_t kOldHeadBytes = 16;
constexpr uint64_t kOldLayerBytes = 49;

struct HeaderForm {
  bool has_growth = true;
  bool has_long_capacity = true;
};

uint64_t tail_bytes_of(uint64_t options) {
  if (options == kNativeOption) return kTailBytes;
  if (options == kValkeyBloomOption) return kTailBytes + kSeedBytes;
  return 0;
}

// The forms are told apart by their sizes.
std::optional<HeaderForm> form_of(uint64_t size, uint64_t layer_count, uint64_t options) {
  if (size == kHeadBytes + kLayerBytes * layer_count + tail_bytes_of(options)) return HeaderForm{};
  if (options > redisbloom_options::kAll) return std::nullopt;
  if (size == kHeadBytes + kOldLayerBytes * layer_count) return HeaderForm{true, false};
  if (size == kOldHeadBytes + kOldLayerBytes * layer_count) return HeaderForm{false, false};
  return std::nullopt;
}

LayerClaim read_layer(ByteReader& in, HeaderForm form) {
  LayerClaim layer;
  layer.array_bytes = in.u64();
  layer.bit_count = in.u64();
  layer.item_count = in.u64();
  layer.error_rate = in.f64();
  layer.bits_per_item = in.f64();
  layer.hash_count = in.u32();
  layer.capacity = form.has_long_capacity ? in.u64() : in.u32();
  layer.exponent = in.u8();
  layer.lines_per_lookup = layer.exponent;
  return layer;
}

bool read_tail(ByteReader in, uint64_t layers_bytes, FilterParameters& parameters) {
  in.take(layers_bytes);
  ValkeyBloomClaim claim;
  claim.expansion = parameters.expansion;
  claim.error_rate = in.f64();
  claim.tightening_ratio = in.f64();
  if (parameters.layout == LayoutId::kNative) {
    parameters.error_rate = claim.error_rate;
    parameters.tightening_ratio = claim.tightening_ratio;
    return in.ok();
  }
  const std::string_view seed = in.take(kSeedBytes);
  if (!in.ok()) return false;
  std::copy_n(seed.begin(), kSeedBytes, parameters.seed.begin());
  return read_valkeybloom_claim(claim, parameters);
}

// The filter as a whole. `in` stands at its first layer.
bool read_parameters(const ByteReader& in, uint64_t options, uint64_t growth,
                     FilterBuilder& builder) {
  FilterParameters& parameters = builder.parameters;
  if (options <= redisbloom_options::kAll) {
    parameters.layout = LayoutId::kRedisBloom;
    return read_redisbloom_options(options, growth, parameters);
  }
  parameters.layout = options == kNativeOption ? LayoutId::kNative : LayoutId::kValkeyBloom;
  parameters.expansion = static_cast<uint32_t>(growth);
  return read_tail(in, in.rest().size() - tail_bytes_of(options), parameters);
}

struct Place {
  size_t layer = 0;
  uint64_t offset = 0;
};

std::optional<Place> place_of(const ScalableFilter& filter, uint64_t position) {
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const uint64_t layer_bytes = stored_array_bytes(filter.layer_info(i).geometry);
    if (position < layer_bytes) return Place{i, position};
    position -= layer_bytes;
  }
  return std::nullopt;
}

// Whether all pages were, so that reading costs no memory.
bool is_touched(const core::bloom::BitArray& bits, uint64_t from, uint64_t to) {
  uint64_t touched_bytes = 0;
  bits.visit_data(
      from, to, [&touched_bytes](uint64_t /*offset*/, auto data) { touched_bytes += data.size(); });
  return touched_bytes == to - from;
}

uint64_t options_of(const FilterParameters& parameters) {
  switch (parameters.layout) {
    case LayoutId::kNative:
      return kNativeOption;
    case LayoutId::kValkeyBloom:
      return kValkeyBloomOption;
    case LayoutId::kRedisBloom:
      break;
  }
  return redisbloom_options_of(parameters);
}

}  // namespace

std::string encode_chunk_header(const ScalableFilter& filter) {
  const FilterParameters parameters = filter.parameters();
  const bool is_redisbloom = parameters.layout == LayoutId::kRedisBloom;
  std::string header;
  ByteWriter out(header);
  out.u64(filter.item_count());
  out.u32(static_cast<uint32_t>(filter.layer_count()));
  out.u32(static_cast<uint32_t>(options_of(parameters)));
  out.u32(is_redisbloom ? static_cast<uint32_t>(redisbloom_growth_of(parameters))
                        : parameters.expansion);
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerClaim layer = claim_of(filter, i);
    out.u64(layer.array_bytes);
    out.u64(layer.bit_count);
    out.u64(layer.item_count);
    out.f64(layer.error_rate);
    out.f64(layer.bits_per_item);
    out.u32(static_cast<uint32_t>(layer.hash_count));
    out.u64(layer.capacity);
    out.u8(static_cast<uint8_t>(is_redisbloom ? layer.exponent : layer.lines_per_lookup));
  }
  if (is_redisbloom) return header;
  const bool is_native = parameters.layout == LayoutId::kNative;
  out.f64(parameters.error_rate);
  out.f64(is_native ? parameters.tightening_ratio : valkeybloom_tightening_of(parameters));
  if (is_native) return header;
  out.bytes({reinterpret_cast<const char*>(parameters.seed.data()), kSeedBytes});
  return header;
}

core::Result<std::unique_ptr<ScalableFilter>> decode_chunk_header(
    std::string_view bytes, const core::MemoryBudget& budget) {
  const core::Error damaged{"ERR damaged filter header"};
  ByteReader in(bytes);
  const uint64_t item_count = in.u64();
  const uint64_t layer_count = in.u32();
  const uint64_t options = in.u32();
  const auto form = form_of(bytes.size(), layer_count, options);
  if (!in.ok() || !form) return damaged;
  const uint64_t growth = form->has_growth ? in.u32() : 2;

  FilterBuilder builder(budget);
  if (!read_parameters(in, options, growth, builder)) return damaged;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < layer_count && builder.ok(); ++i) {
    const LayerClaim layer = read_layer(in, *form);
    if (__builtin_add_overflow(sum, layer.item_count, &sum)) return damaged;
    builder.add_layer(layer);
  }
  if (builder.ok() && sum != item_count) return damaged;
  return builder.finish();
}

std::string_view chunk_at(const ScalableFilter& filter, uint64_t position, std::string& padded) {
  const auto place = place_of(filter, position);
  if (!place) return {};
  const core::bloom::BitArray& bits = filter.layer_bits(place->layer);
  if (!bits.is_mapped()) {
    return stored_array(filter, place->layer, padded).substr(place->offset, kMaxChunkBytes);
  }
  const uint64_t end = std::min(place->offset + kMaxChunkBytes, bits.bytes().size());
  if (is_touched(bits, place->offset, end)) {
    const auto chunk = bits.bytes().subspan(place->offset, end - place->offset);
    return {reinterpret_cast<const char*>(chunk.data()), chunk.size()};
  }
  padded.clear();
  ByteWriter copy(padded);
  write_plain(copy, bits, place->offset, end);
  return padded;
}

ChunkOutcome load_chunk(ScalableFilter& filter, uint64_t position, std::string_view bytes) {
  const auto place = place_of(filter, position);
  if (!place) return ChunkOutcome::kPastTheEnd;
  const core::bloom::Geometry geometry = filter.layer_info(place->layer).geometry;
  if (bytes.size() > stored_array_bytes(geometry) - place->offset) {
    return ChunkOutcome::kCrossesLayers;
  }
  core::bloom::BitArray& bits = filter.mutable_layer_bits(place->layer);
  // What lies behind the array is padding.
  const uint64_t start = std::min<uint64_t>(place->offset, bits.bytes().size());
  const uint64_t size = std::min<uint64_t>(bytes.size(), bits.bytes().size() - start);
  bits.write(start, std::as_bytes(std::span(bytes.data(), size)));
  clear_spare_bits(bits.bytes(), geometry.bit_count);
  return ChunkOutcome::kLoaded;
}

}  // namespace persistence
