// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_chunks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "core/bloom/parameters.h"
#include "core/bloom/window.h"
#include "persistence/bytes/byte_codec.h"
#include "persistence/filters/bit_array_codec.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/filters/filter_writer.h"
#include "persistence/filters/layout_codec.h"
#include "persistence/filters/redisbloom_codec.h"
#include "persistence/filters/window_codec.h"

namespace persistence {
namespace {

using core::bloom::FilterParameters;
using core::bloom::ScalableFilter;

constexpr uint64_t kFormHeadBytes = 20;
constexpr uint64_t kLayerBytes = 53;
constexpr uint64_t kSeedBytes = std::tuple_size_v<core::bloom::Seed>;
// The size of the fields after the layers: error rate and tightening ratio. The layout redisbloom
// lacks these fields.
constexpr uint64_t kTailBytes = 16;
// The sizes in headers of older RedisBloom releases. Releases up to 2.2 had 32-bit capacities, and
// still older ones stored no growth.
constexpr uint64_t kOldHeadBytes = 16;
constexpr uint64_t kOldLayerBytes = 49;

// The option bit of a filter with estimated item counts. It is set in addition to the options of
// the layout.
constexpr uint64_t kEstimatedOption = uint64_t{1} << 16;
// The option bit of a filter with a window. The numbers of the window then follow all other fields
// of the header.
constexpr uint64_t kWindowOption = uint64_t{1} << 17;

// JavaScript clients read integers as doubles, so the highest iterator must be below 2^53.
constexpr uint64_t kMarkCount = (uint64_t{1} << 13) - 1;

struct HeaderForm {
  bool has_growth = true;
  bool has_long_capacity = true;
};

// A header of RedisBloom has no fields after the layers.
bool is_redisbloom(const LayoutCodec& codec) {
  return codec.chunk_option == 0;
}

uint64_t tail_bytes_of(const LayoutCodec& codec) {
  if (is_redisbloom(codec)) return 0;
  return kTailBytes + (core::bloom::layout_row(codec.layout).takes_seed ? kSeedBytes : 0);
}

// The size of a header determines its format. The size of a windowed filter's header depends on
// counts in the header, so here only the minimum size is checked.
std::optional<HeaderForm> form_of(uint64_t size, uint64_t layer_count, const LayoutCodec& codec,
                                  bool has_window) {
  if (has_window) {
    const bool has_all = size >= kFormHeadBytes + kLayerBytes * layer_count + tail_bytes_of(codec);
    return has_all ? std::optional(HeaderForm{}) : std::nullopt;
  }
  if (size == kFormHeadBytes + kLayerBytes * layer_count + tail_bytes_of(codec))
    return HeaderForm{};
  if (!is_redisbloom(codec)) return std::nullopt;
  if (size == kFormHeadBytes + kOldLayerBytes * layer_count) return HeaderForm{true, false};
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

bool is_deletable(const LayoutCodec& codec) {
  return core::bloom::layout_row(codec.layout).clears_bits;
}

// Headers of the deletable layouts store the number of bits of a cell in the field for bits per
// item.
uint64_t cell_bits_of(double bits_per_item) {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  const bool is_whole = bits_per_item >= 0 &&
                        bits_per_item <= std::numeric_limits<uint16_t>::max() &&
                        bits_per_item == std::floor(bits_per_item);
  return is_whole ? static_cast<uint64_t>(bits_per_item) : kNone;
}

// Skips the layers of a header, and reads the fields that follow them. `in` must be positioned at
// the first layer.
bool read_tail(ByteReader in, const LayoutCodec& codec, uint64_t growth, uint64_t layer_count,
               FilterBuilder& builder, bool has_window) {
  FilterParameters& parameters = builder.parameters;
  in.take(kLayerBytes * layer_count);
  SettingsClaim claim;
  claim.expansion = growth;
  claim.error_rate = in.f64();
  claim.tightening_ratio = in.f64();
  if (core::bloom::layout_row(codec.layout).takes_seed) {
    const std::string_view seed = in.take(kSeedBytes);
    if (!in.ok()) return false;
    std::copy_n(seed.begin(), kSeedBytes, parameters.seed.begin());
  }
  if (!in.ok() || !codec.take_settings(claim, parameters)) return false;
  if (has_window) decode_window([&in] { return in.u64(); }, layer_count, builder);
  return in.ok() && builder.ok() && in.rest().empty();
}

uint64_t options_of(const LayoutCodec& codec, const FilterParameters& parameters) {
  if (is_redisbloom(codec)) return redisbloom_options_of(parameters);
  const bool is_marked =
      parameters.item_count_is_estimated && core::bloom::layout_row(codec.layout).marks_estimates;
  return codec.chunk_option | (is_marked ? kEstimatedOption : 0) |
         (parameters.window.is_set() ? kWindowOption : 0);
}

// Returns the codec of the layout that the header's options select, and stores the options in
// `parameters`. Returns null if no layout has these options.
const LayoutCodec* take_options(uint64_t options, FilterParameters& parameters) {
  const LayoutCodec* const codec =
      layout_codec_of_chunks(options & ~(kEstimatedOption | kWindowOption));
  if (codec == nullptr) return nullptr;
  const bool has_window = (options & kWindowOption) != 0;
  if (has_window && !core::bloom::layout_row(codec->layout).takes_window) return nullptr;
  if ((options & kEstimatedOption) == 0) return codec;
  if (!core::bloom::layout_row(codec->layout).marks_estimates) return nullptr;
  parameters.item_count_is_estimated = true;
  return codec;
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

// Returns whether all pages of the range were touched. If so, reading the range allocates no pages.
bool is_touched(const core::bloom::BitArray& bits, uint64_t from, uint64_t to) {
  uint64_t end = from;
  while (end < to && bits.next_data(end) == end) end = bits.data_end(end);
  return end >= to;
}

// Returns the header of the filter's first `layer_count` layers, with or without their item counts.
std::string encode_header(const ScalableFilter& filter, size_t layer_count, bool has_items) {
  const FilterParameters parameters = filter.parameters();
  const LayoutCodec& codec = layout_codec(parameters.layout);
  const bool is_theirs = is_redisbloom(codec);
  std::string header;
  ByteWriter out(header);
  out.u64(has_items ? filter.item_count() : 0);
  out.u32(static_cast<uint32_t>(layer_count));
  out.u32(static_cast<uint32_t>(options_of(codec, parameters)));
  out.u32(is_theirs ? static_cast<uint32_t>(redisbloom_growth_of(parameters))
                    : parameters.expansion);
  for (size_t i = 0; i < layer_count; ++i) {
    const LayerClaim layer = claim_of(filter, i);
    out.u64(layer.array_bytes);
    out.u64(layer.bit_count);
    out.u64(has_items ? layer.item_count : 0);
    out.f64(layer.error_rate);
    out.f64(is_deletable(codec) ? static_cast<double>(layer.cell_bits) : layer.bits_per_item);
    out.u32(static_cast<uint32_t>(layer.hash_count));
    out.u64(layer.capacity);
    out.u8(static_cast<uint8_t>(is_theirs ? layer.exponent : layer.lines_per_lookup));
  }
  if (is_theirs) return header;
  out.f64(parameters.error_rate);
  out.f64(tightening_ratio_of(parameters));
  if (parameters.window.is_set()) {
    for (const uint64_t number : encode_window(filter)) out.u64(number);
  }
  if (!core::bloom::layout_row(codec.layout).takes_seed) return header;
  out.bytes({reinterpret_cast<const char*>(parameters.seed.data()), kSeedBytes});
  return header;
}

}  // namespace

std::string encode_chunk_header(const ScalableFilter& filter) {
  return encode_header(filter, filter.layer_count(), true);
}

std::string encode_empty_chunk_header(const ScalableFilter& filter) {
  return encode_header(filter, 1, false);
}

core::Result<std::unique_ptr<ScalableFilter>> decode_chunk_header(
    std::string_view bytes, const core::MemoryBudget& budget) {
  const core::Error damaged{"ERR damaged filter header"};
  ByteReader in(bytes);
  const uint64_t item_count = in.u64();
  const uint64_t layer_count = in.u32();
  const uint64_t options = in.u32();
  FilterBuilder builder(budget);
  FilterParameters& parameters = builder.parameters;
  const LayoutCodec* const codec = take_options(options, parameters);
  if (!in.ok() || codec == nullptr) return damaged;
  const bool has_window = (options & kWindowOption) != 0;
  const auto form = form_of(bytes.size(), layer_count, *codec, has_window);
  if (!form) return damaged;
  const uint64_t growth = form->has_growth ? in.u32() : 2;

  parameters.layout = codec->layout;
  const bool is_readable = is_redisbloom(*codec)
                               ? read_redisbloom_options(options, growth, parameters)
                               : read_tail(in, *codec, growth, layer_count, builder, has_window);
  if (!is_readable) return damaged;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < layer_count && builder.ok(); ++i) {
    LayerClaim layer = read_layer(in, *form);
    if (is_deletable(*codec)) layer.cell_bits = cell_bits_of(layer.bits_per_item);
    sum = core::bloom::add_counts(sum, layer.item_count);
    builder.add_layer(layer);
  }
  if (builder.ok() && sum != item_count) return damaged;
  return builder.finish();
}

uint64_t iterator_mark(const ScalableFilter& filter) {
  if (filter.window() == nullptr) return 0;
  return (1 + filter.window()->newest().ordinal % kMarkCount) * kIteratorMarkUnit;
}

std::optional<uint64_t> unmarked_iterator(const ScalableFilter& filter, uint64_t iterator) {
  const uint64_t mark = iterator_mark(filter);
  if (mark != 0 && iterator / kIteratorMarkUnit != mark / kIteratorMarkUnit) return std::nullopt;
  return iterator - mark;
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
  padded.reserve(end - place->offset);
  ByteWriter copy(padded);
  write_plain(copy, bits, place->offset, end);
  return padded;
}

ChunkOutcome load_chunk(ScalableFilter& filter, uint64_t position, std::string_view bytes,
                        ChunkCheck check) {
  const auto place = place_of(filter, position);
  if (!place) return ChunkOutcome::kPastTheEnd;
  const core::bloom::Geometry geometry = filter.layer_info(place->layer).geometry;
  if (bytes.size() > stored_array_bytes(geometry) - place->offset) {
    return ChunkOutcome::kCrossesLayers;
  }
  core::bloom::BitArray& bits = filter.mutable_layer_bits(place->layer);
  // Bytes after the end of the array are padding.
  const uint64_t start = std::min<uint64_t>(place->offset, bits.bytes().size());
  const uint64_t size = std::min<uint64_t>(bytes.size(), bits.bytes().size() - start);
  const bool is_last = place->layer + 1 == filter.layer_count() &&
                       place->offset + bytes.size() == stored_array_bytes(geometry);
  const bool is_checked = check == ChunkCheck::kOfTheWhole && is_last &&
                          layout_codec(filter.layout()).is_sound != nullptr;
  std::string before;  // copy of the old bytes, to undo a chunk that makes the filter invalid
  if (is_checked) {
    ByteWriter copy(before);
    write_plain(copy, bits, start, start + size);
  }
  bits.write(start, std::as_bytes(std::span(bytes.data(), size)));
  clear_spare_bits(bits.bytes(), geometry.bit_count);
  if (!is_checked || is_sound(filter, core::bloom::Loaded::kWhole)) return ChunkOutcome::kLoaded;
  bits.write(start, std::as_bytes(std::span(before.data(), size)));
  return ChunkOutcome::kUnsound;
}

}  // namespace persistence
