// SPDX-License-Identifier: MIT
#include "persistence/filters/valkeybloom_codec.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/bloom/valkeybloom_layout.h"
#include "persistence/bytes/module_value.h"
#include "persistence/filters/bit_array_codec.h"
#include "persistence/filters/bloomery_codec.h"
#include "persistence/filters/filter_writer.h"

namespace persistence {

using core::bloom::FilterParameters;
using core::bloom::Geometry;
using core::bloom::LayerParts;
using core::bloom::ScalableFilter;
using core::bloom::ValkeyBloomLayout;

namespace {

constexpr uint8_t kBlobVersion = 1;
constexpr uint8_t kLoadPayloadVersion = 1;
constexpr uint64_t kBlobHeaderBytes = 45;

// Reads the seed of layer `index`. The first layer's seed becomes that of the filter.
bool take_seed(std::string_view bytes, uint64_t index, bool may_be_random,
               FilterParameters& parameters) {
  core::bloom::Seed seed;
  std::copy_n(bytes.begin(), seed.size(), seed.begin());
  if (!may_be_random && seed != core::bloom::kFixedSeed) return false;
  if (index == 0) parameters.seed = seed;
  return seed == parameters.seed;
}

// Returns the bytes of a layer's blob that precede its bits.
std::string encode_blob_head(const ScalableFilter& filter, size_t index) {
  const core::bloom::Seed seed = filter.parameters().seed;
  std::string head;
  ByteWriter out(head);
  out.u8(kBlobVersion);
  out.u64(filter.layer_bits(index).bytes().size());
  out.u32(filter.layer_info(index).geometry.hash_count);
  out.bytes({reinterpret_cast<const char*>(seed.data()), seed.size()});
  return head;
}

// The layer that a blob describes. `claim` has only array size, hash count and error rate, because
// the blob has no other properties, such as the capacity.
struct BlobLayer {
  LayerClaim claim;
  core::bloom::BitArray bits;
};

// Reads layer `index` from its blob. The caller adds the layer to `builder`. If the blob is damaged
// or does not fit in memory, `builder` fails and nullopt is returned.
std::optional<BlobLayer> read_blob(FilterBuilder& builder, StringReader& blob, uint64_t index,
                                   bool may_be_random) {
  std::array<char, kBlobHeaderBytes> head{};
  BlobLayer layer;
  bool is_sound = blob.size() > head.size() && blob.read(head);
  if (is_sound) {
    ByteReader in({head.data(), head.size()});
    const uint8_t version = in.u8();
    layer.claim.array_bytes = in.u64();
    layer.claim.hash_count = in.u32();
    is_sound = version == kBlobVersion && layer.claim.array_bytes == blob.size() - head.size() &&
               layer.claim.array_bytes <= core::bloom::BitArray::kMaxBits / 8 &&
               take_seed(in.rest(), index, may_be_random, builder.parameters);
  }
  if (!is_sound) builder.fail(kDamagedFilter);
  if (!builder.ok()) return std::nullopt;
  auto bits = builder.allocate(layer.claim.array_bytes * 8);
  if (!bits) return std::nullopt;
  layer.bits = std::move(*bits);
  if (!read_plain(blob, layer.bits, 0, layer.bits.bytes().size())) builder.fail(kDamagedFilter);
  if (!builder.ok()) return std::nullopt;
  layer.claim.error_rate = layer_error_rate(builder.parameters, static_cast<uint32_t>(index));
  return layer;
}

}  // namespace

bool take_valkeybloom_settings(const SettingsClaim& claim, FilterParameters& parameters) {
  return core::bloom::is_rate(claim.error_rate) && core::bloom::is_rate(claim.tightening_ratio) &&
         claim.has_random_seed <= 1 && take_bloomery_settings(claim, parameters);
}

void encode_valkeybloom(FilterWriter& out, const ScalableFilter& filter) {
  const FilterParameters parameters = filter.parameters();
  out.unsigned_number(filter.layer_count());
  out.unsigned_number(parameters.expansion);
  out.real_number(parameters.error_rate);
  out.real_number(tightening_ratio_of(parameters));
  out.unsigned_number(parameters.seed != core::bloom::kFixedSeed);
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    out.array_behind(encode_blob_head(filter, i), filter, i);
    out.unsigned_number(filter.layer_info(i).capacity);
    // The item counts of older layers are not stored, because these layers are full.
    if (i + 1 == filter.layer_count()) out.unsigned_number(filter.layer_info(i).item_count);
  }
}

void decode_valkeybloom(ModuleReader& in, FilterBuilder& builder, unsigned /*version*/) {
  SettingsClaim claim;
  const uint64_t layer_count = in.unsigned_number();
  claim.expansion = in.unsigned_number();
  claim.error_rate = in.real_number();
  claim.tightening_ratio = in.real_number();
  claim.has_random_seed = in.unsigned_number();
  if (!take_valkeybloom_settings(claim, builder.parameters)) builder.fail(kDamagedFilter);
  for (uint64_t i = 0; i < layer_count && in.ok() && builder.ok(); ++i) {
    StringReader blob = in.string();
    if (!in.ok()) break;
    auto layer = read_blob(builder, blob, i, claim.has_random_seed != 0);
    if (!layer) break;
    layer->claim.capacity = in.unsigned_number();
    layer->claim.item_count = i + 1 == layer_count ? in.unsigned_number() : layer->claim.capacity;
    if (in.ok()) builder.add_layer(layer->claim, std::move(layer->bits));
  }
}

std::optional<Geometry> accept_valkeybloom(LayerClaim& claim, FilterParameters& parameters,
                                           std::span<const LayerParts> earlier) {
  const double rate = layer_error_rate(parameters, static_cast<uint32_t>(earlier.size()));
  if (!core::bloom::is_close(claim.error_rate, rate)) return std::nullopt;
  claim.error_rate = rate;
  if (!earlier.empty() && earlier.back().item_count != earlier.back().capacity) return std::nullopt;
  const auto geometry =
      ValkeyBloomLayout::size_of(claim.capacity, claim.error_rate, claim.array_bytes);
  if (!geometry || claim.hash_count != geometry->hash_count) return std::nullopt;
  return geometry;
}

uint64_t load_payload_bytes(const ScalableFilter& filter) {
  constexpr uint64_t kHeadBytes = 1 + 4 + 8 + 8 + 1 + 8;
  constexpr uint64_t kLayerBytes = 8 + kBlobHeaderBytes + 8 + 8;
  uint64_t size_bytes = kHeadBytes;
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    size_bytes += kLayerBytes + filter.layer_bits(i).bytes().size();
  }
  return size_bytes;
}

void write_load_payload(const ScalableFilter& filter, const PieceWriter& write) {
  const FilterParameters parameters = filter.parameters();
  std::string piece;
  ByteWriter out(piece);
  out.u8(kLoadPayloadVersion);
  out.u32(parameters.expansion);
  out.f64(parameters.error_rate);
  out.f64(tightening_ratio_of(parameters));
  out.u8(parameters.seed != core::bloom::kFixedSeed);
  out.u64(filter.layer_count());
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const std::string blob_head = encode_blob_head(filter, i);
    const core::bloom::BitArray& bits = filter.layer_bits(i);
    const uint64_t array_bytes = bits.bytes().size();
    out.u64(blob_head.size() + array_bytes);
    out.bytes(blob_head);
    constexpr uint64_t kPieceBytes = uint64_t{64} << 10;
    for (uint64_t at = 0; at < array_bytes; at += kPieceBytes) {
      write(piece);
      piece.clear();
      write_plain(out, bits, at, std::min(at + kPieceBytes, array_bytes));
    }
    out.u64(filter.layer_info(i).item_count);
    out.u64(filter.layer_info(i).capacity);
  }
  write(piece);
}

core::Result<std::unique_ptr<ScalableFilter>> decode_load_payload(
    std::string_view payload, const core::MemoryBudget& budget) {
  StreamReader in(payload);
  const uint8_t version = in.u8();
  if (in.ok() && version != kLoadPayloadVersion) return core::Error{std::string(kLoadVersion)};
  FilterBuilder builder(budget);
  builder.parameters.layout = ValkeyBloomLayout::kId;
  SettingsClaim claim;
  claim.expansion = in.u32();
  claim.error_rate = in.f64();
  claim.tightening_ratio = in.f64();
  claim.has_random_seed = in.u8();
  const uint64_t layer_count = in.u64();
  if (!take_valkeybloom_settings(claim, builder.parameters)) builder.fail(kLoadFailed);
  for (uint64_t i = 0; i < layer_count && in.ok() && builder.ok(); ++i) {
    StringReader blob = StringReader::plain(in, in.u64());
    if (!in.ok()) break;
    auto layer = read_blob(builder, blob, i, claim.has_random_seed != 0);
    if (!layer) break;
    layer->claim.item_count = in.u64();
    layer->claim.capacity = in.u64();
    if (in.ok()) builder.add_layer(layer->claim, std::move(layer->bits));
  }
  if (!in.ok()) builder.fail(kLoadFailed);
  auto filter = builder.finish();
  if (!filter && filter.error().code != core::ErrorCode::kOutOfMemory) {
    return core::Error{std::string(kLoadFailed), core::ErrorCode::kDamaged};
  }
  return filter;
}

}  // namespace persistence
