// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_codec.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "core/bloom/redisbloom_layout.h"
#include "persistence/filters/bit_array_codec.h"
#include "persistence/filters/valkeybloom_blob.h"

namespace persistence {
namespace {

using core::bloom::FilterParameters;
using core::bloom::LayoutId;
using core::bloom::RedisBloomLayout;
using core::bloom::ScalableFilter;
using FilterResult = core::Result<std::unique_ptr<ScalableFilter>>;

constexpr std::string_view kRedisBloomName = "MBbloom--";
constexpr std::string_view kValkeyBloomName = "bloomfltr";
constexpr std::string_view kNativeName = "bloomery-";
constexpr unsigned kRedisBloomVersion = 4;
constexpr unsigned kValkeyBloomVersion = 1;
// Native filters without a big array; since then big ones are runs.
constexpr unsigned kNativeVersion = 1;
constexpr unsigned kNativeVersionWithRuns = 2;
constexpr uint64_t kRunsFromBytes = uint64_t{1} << 20;
// Arrays with untouched pages are those that are written as runs.
static_assert(kRunsFromBytes == core::bloom::BitArray::kMappedBytes);
// RedisBloom's versions from which on a field is stored.
constexpr unsigned kSinceBits = 1;
constexpr unsigned kSinceOptions = 2;
constexpr unsigned kSinceGrowth = 4;

// Writes the fields of a module's value, and bit arrays in the way that their memory asks for.
class FilterWriter {
 public:
  FilterWriter(ByteWriter& writer, uint64_t id, Packing packing)
      : writer_(writer), fields_(writer, id), packing_(packing) {}

  void unsigned_number(uint64_t value) { fields_.unsigned_number(value); }
  void real_number(double value) { fields_.real_number(value); }
  void end() { fields_.end(); }

  void array(const ScalableFilter& filter, size_t index) { array_behind({}, filter, index); }
  void runs(const ScalableFilter& filter, size_t index) {
    write_runs(writer_, fields_, filter.layer_bits(index));
  }
  void valkeybloom_blob(const ScalableFilter& filter, size_t index) {
    array_behind(encode_valkeybloom_blob_head(filter, index), filter, index);
  }

 private:
  // A string of both.
  void array_behind(std::string_view head, const ScalableFilter& filter, size_t index) {
    const core::bloom::BitArray& bits = filter.layer_bits(index);
    const bool is_packed = packing_of(bits) == Packing::kIfSmaller;
    if (!bits.is_mapped()) {
      const std::string_view array = stored_array(filter, index, padded_);
      return is_packed ? fields_.string(std::string(head).append(array), packing_)
                       : plain_string(head, array);
    }
    const uint64_t array_bytes = bits.bytes().size();
    if (is_packed) {
      std::string whole(head);
      ByteWriter copy(whole);
      write_plain(copy, bits, 0, array_bytes);
      return fields_.string(whole, packing_);
    }
    plain_string_head(head, array_bytes);
    write_plain(writer_, bits, 0, array_bytes);
  }
  void plain_string_head(std::string_view head, uint64_t array_bytes) {
    fields_.string_head(head.size() + array_bytes);
    writer_.bytes(head);
  }
  void plain_string(std::string_view head, std::string_view array) {
    plain_string_head(head, array.size());
    writer_.bytes(array);
  }
  // Packing reads bytes several times: if they change meanwhile, bits would be lost that were set
  // all along. Besides it takes a copy.
  Packing packing_of(const core::bloom::BitArray& bits) const {
    return writer_.is_chunked() && bits.is_mapped() ? Packing::kNever : packing_;
  }

  ByteWriter& writer_;
  ModuleWriter fields_;
  Packing packing_;
  std::string padded_;
};

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

void encode_valkeybloom(FilterWriter& out, const ScalableFilter& filter) {
  const FilterParameters parameters = filter.parameters();
  out.unsigned_number(filter.layer_count());
  out.unsigned_number(parameters.expansion);
  out.real_number(parameters.error_rate);
  out.real_number(valkeybloom_tightening_of(parameters));
  out.unsigned_number(parameters.seed != core::bloom::kFixedSeed);
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    out.valkeybloom_blob(filter, i);
    out.unsigned_number(filter.layer_info(i).capacity);
    // The older layers are full.
    if (i + 1 == filter.layer_count()) out.unsigned_number(filter.layer_info(i).item_count);
  }
}

bool has_runs(const LayerClaim& layer) {
  return layer.array_bytes >= kRunsFromBytes;
}

unsigned native_version_of(const ScalableFilter& filter) {
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    if (filter.layer_bits(i).is_mapped()) return kNativeVersionWithRuns;
  }
  return kNativeVersion;
}

void encode_native(FilterWriter& out, const ScalableFilter& filter) {
  const FilterParameters parameters = filter.parameters();
  out.unsigned_number(filter.layer_count());
  out.unsigned_number(parameters.expansion);
  out.real_number(parameters.error_rate);
  out.real_number(parameters.tightening_ratio);
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerClaim layer = claim_of(filter, i);
    out.unsigned_number(layer.capacity);
    out.unsigned_number(layer.item_count);
    out.real_number(layer.error_rate);
    out.unsigned_number(layer.bit_count);
    out.unsigned_number(layer.hash_count);
    out.unsigned_number(layer.lines_per_lookup);
    if (has_runs(layer)) {
      out.runs(filter, i);
    } else {
      out.array(filter, i);
    }
  }
}

FilterResult finish(ModuleReader& in, FilterBuilder& builder) {
  // Where the builder stopped, the field that follows is not the end.
  if (builder.ok()) in.end();
  if (!in.ok()) builder.fail(kDamagedFilter);
  return builder.finish();
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

FilterResult decode_redisbloom(ModuleReader& in, unsigned version,
                               const core::MemoryBudget& budget) {
  FilterBuilder builder(budget);
  builder.parameters.layout = LayoutId::kRedisBloom;
  in.unsigned_number();  // the total, which the layers give too
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
  return finish(in, builder);
}

FilterResult decode_valkeybloom(ModuleReader& in, const core::MemoryBudget& budget) {
  FilterBuilder builder(budget);
  ValkeyBloomClaim claim;
  const uint64_t layer_count = in.unsigned_number();
  claim.expansion = in.unsigned_number();
  claim.error_rate = in.real_number();
  claim.tightening_ratio = in.real_number();
  claim.has_random_seed = in.unsigned_number();
  if (!read_valkeybloom_claim(claim, builder.parameters)) builder.fail(kDamagedFilter);
  for (uint64_t i = 0; i < layer_count && in.ok() && builder.ok(); ++i) {
    StringReader blob = in.string();
    if (!in.ok()) break;
    auto layer = read_valkeybloom_blob(builder, blob, {i == 0, claim.has_random_seed != 0});
    if (!layer) break;
    layer->claim.capacity = in.unsigned_number();
    layer->claim.item_count = i + 1 == layer_count ? in.unsigned_number() : layer->claim.capacity;
    layer->claim.error_rate = layer_error_rate(builder.parameters, static_cast<uint32_t>(i));
    if (in.ok()) builder.add_layer(layer->claim, std::move(layer->bits));
  }
  return finish(in, builder);
}

FilterResult decode_native(ModuleReader& in, unsigned version, const core::MemoryBudget& budget) {
  FilterBuilder builder(budget);
  FilterParameters& parameters = builder.parameters;
  parameters.layout = LayoutId::kNative;
  const uint64_t layer_count = in.unsigned_number();
  const uint64_t expansion = in.unsigned_number();
  if (expansion > std::numeric_limits<uint32_t>::max()) builder.fail(kDamagedFilter);
  parameters.expansion = static_cast<uint32_t>(expansion);
  parameters.error_rate = in.real_number();
  parameters.tightening_ratio = in.real_number();
  for (uint64_t i = 0; i < layer_count && in.ok() && builder.ok(); ++i) {
    LayerClaim layer;
    layer.capacity = in.unsigned_number();
    layer.item_count = in.unsigned_number();
    layer.error_rate = in.real_number();
    layer.bit_count = in.unsigned_number();
    layer.hash_count = in.unsigned_number();
    layer.lines_per_lookup = in.unsigned_number();
    layer.array_bytes = layer.bit_count / 8;
    if (version >= kNativeVersionWithRuns && has_runs(layer)) {
      if (in.ok()) builder.add_layer_of_runs(layer, in);
      continue;
    }
    StringReader array = in.string();
    layer.array_bytes = array.size();
    if (in.ok()) builder.add_layer(layer, array);
  }
  return finish(in, builder);
}

}  // namespace

uint64_t redisbloom_options_of(const FilterParameters& parameters) {
  using namespace redisbloom_options;
  return (parameters.rounds_to_power_of_two ? 0 : kNotRounded) |
         (parameters.hashes_32_bits ? 0 : kHashes64Bits) |
         (parameters.is_scaling() ? 0 : kNotScaling);
}

uint64_t redisbloom_growth_of(const FilterParameters& parameters) {
  return parameters.is_scaling() ? parameters.expansion : parameters.idle_growth;
}

bool read_redisbloom_options(uint64_t options, uint64_t growth, FilterParameters& parameters) {
  using namespace redisbloom_options;
  const bool is_scaling = (options & kNotScaling) == 0;
  if (options > kAll || growth > kRedisBloomGrowthMax || (is_scaling && growth == 0)) return false;
  parameters.rounds_to_power_of_two = (options & kNotRounded) == 0;
  parameters.hashes_32_bits = (options & kHashes64Bits) == 0;
  parameters.expansion = is_scaling ? static_cast<uint32_t>(growth) : 0;
  if (!is_scaling) parameters.idle_growth = static_cast<uint16_t>(growth);
  return true;
}

LayerClaim claim_of(const ScalableFilter& filter, size_t index) {
  const core::bloom::LayerInfo info = filter.layer_info(index);
  LayerClaim claim;
  claim.capacity = info.capacity;
  claim.item_count = info.item_count;
  claim.error_rate = info.error_rate;
  claim.hash_count = info.geometry.hash_count;
  claim.bit_count = info.geometry.bit_count;
  claim.array_bytes = stored_array_bytes(info.geometry);
  claim.lines_per_lookup = info.geometry.lines_per_lookup;
  // Where another machine has sized the layer, RedisBloom still wants these two to agree.
  claim.bits_per_item = RedisBloomLayout::bits_per_item(info.error_rate, claim.hash_count)
                            .value_or(RedisBloomLayout::bits_per_item(info.error_rate));
  if (info.geometry.is_rounded) {
    claim.exponent = static_cast<uint64_t>(std::countr_zero(info.geometry.bit_count));
    // Of an array below one word RedisBloom counts the padding too.
    claim.bit_count = claim.array_bytes * 8;
  }
  return claim;
}

std::string_view stored_array(const ScalableFilter& filter, size_t index, std::string& padded) {
  const std::span<const std::byte> array = filter.layer_bytes(index);
  const std::string_view bytes(reinterpret_cast<const char*>(array.data()), array.size());
  const uint64_t stored_bytes = stored_array_bytes(filter.layer_info(index).geometry);
  if (stored_bytes == bytes.size()) return bytes;
  padded.assign(bytes);
  padded.resize(stored_bytes);
  return padded;
}

void encode_filter(ByteWriter& writer, const ScalableFilter& filter, Packing packing) {
  switch (filter.layout()) {
    case LayoutId::kNative: {
      FilterWriter out(writer, module_id(kNativeName, native_version_of(filter)), packing);
      encode_native(out, filter);
      return out.end();
    }
    case LayoutId::kRedisBloom: {
      FilterWriter out(writer, module_id(kRedisBloomName, kRedisBloomVersion), packing);
      encode_redisbloom(out, filter);
      return out.end();
    }
    case LayoutId::kValkeyBloom: {
      FilterWriter out(writer, module_id(kValkeyBloomName, kValkeyBloomVersion), packing);
      encode_valkeybloom(out, filter);
      return out.end();
    }
  }
}

bool is_filter_module(uint64_t id) {
  const std::string name = module_name(id);
  return name == kRedisBloomName || name == kValkeyBloomName || name == kNativeName;
}

FilterResult decode_filter(StreamReader& reader, const core::MemoryBudget& budget) {
  const uint64_t id = reader.length();
  if (!reader.ok()) return core::Error{std::string(kDamagedFilter)};
  return decode_filter_of(id, reader, budget);
}

FilterResult decode_filter_of(uint64_t id, StreamReader& reader, const core::MemoryBudget& budget) {
  ModuleReader in(reader);
  const std::string name = module_name(id);
  const unsigned version = module_version(id);
  if (name == kRedisBloomName && version <= kRedisBloomVersion) {
    return decode_redisbloom(in, version, budget);
  }
  // valkey-bloom's version 0 was never released; it places its bits in another order.
  if (name == kValkeyBloomName && version == kValkeyBloomVersion) {
    return decode_valkeybloom(in, budget);
  }
  if (name == kNativeName && version >= kNativeVersion && version <= kNativeVersionWithRuns) {
    return decode_native(in, version, budget);
  }
  return core::Error{fmt::format("ERR unknown module value '{}' version {}", name, version)};
}

}  // namespace persistence
