// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/bloom/native_layout.h"
#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/valkeybloom_layout.h"
#include "persistence/filters/bit_array_codec.h"

namespace persistence {
namespace {

using core::bloom::BitArray;
using core::bloom::FilterParameters;
using core::bloom::Geometry;
using core::bloom::LayoutId;
using core::bloom::NativeLayout;
using core::bloom::RedisBloomLayout;
using core::bloom::ValkeyBloomLayout;

constexpr uint64_t kMaxCapacity = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMaxHashCount = 2048;

bool is_close(double a, double b) {
  return std::fabs(a - b) <= core::bloom::kRateTolerance * b;
}

uint64_t whole_bytes(uint64_t bit_count) {
  return (bit_count + 7) / 8;
}

// A layer whose modulus is 2^exponent. Rounding up left room, which its capacity counts, so that
// the bits wanted lie within one item of the modulus or below it, but above the half.
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
  // Releases before 2.2 stored 0 in place of the bit count.
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

// The bits that are stored are judged by capacity, error rate and hash count alone, which are
// written again as they came: what is accepted is accepted again.
std::optional<Geometry> redisbloom_geometry(const LayerClaim& claim, bool may_be_rounded) {
  const auto per_item = RedisBloomLayout::bits_per_item(claim.error_rate, claim.hash_count);
  if (!per_item || !is_close(claim.bits_per_item, *per_item)) return std::nullopt;
  auto geometry = RedisBloomLayout::size_with(claim.capacity, *per_item);
  if (!geometry) return std::nullopt;
  if (claim.exponent != 0) {
    return may_be_rounded ? rounded_geometry(claim, *per_item, *geometry) : std::nullopt;
  }
  const double wanted = static_cast<double>(claim.capacity) * *per_item;
  const auto bits_of = [](double bits) { return static_cast<uint64_t>(std::max(1.0, bits)); };
  const uint64_t least = bits_of(wanted * (1 - core::bloom::kRateTolerance));
  const uint64_t most = bits_of(wanted * (1 + core::bloom::kRateTolerance));
  // Releases before 2.2 took the modulus as it came.
  const bool is_exact = claim.bit_count >= least && claim.bit_count <= most;
  const bool is_whole_words = claim.bit_count % 64 == 0 && claim.bit_count >= words_of(least) &&
                              claim.bit_count <= words_of(most);
  if (!is_exact && !is_whole_words) return std::nullopt;
  geometry->bit_count = claim.bit_count;
  const bool sizes_agree = claim.array_bytes == geometry->size_bytes() ||
                           claim.array_bytes == whole_bytes(claim.bit_count);
  return sizes_agree ? geometry : std::nullopt;
}

std::optional<Geometry> valkeybloom_geometry(const LayerClaim& claim) {
  const auto geometry =
      ValkeyBloomLayout::size_of(claim.capacity, claim.error_rate, claim.array_bytes);
  if (!geometry || claim.hash_count != geometry->hash_count) return std::nullopt;
  return geometry;
}

// How many bits are best is a model that later versions may refine, so that only the order of
// magnitude is compared; the shape itself is checked by ScalableFilter::assemble.
std::optional<Geometry> native_geometry(const LayerClaim& claim) {
  if (claim.capacity > core::bloom::kMaxLayerCapacity) return std::nullopt;
  const auto expected = NativeLayout::size(claim.capacity, claim.error_rate);
  if (!expected || claim.bit_count > BitArray::kMaxBits) return std::nullopt;
  if (claim.bit_count / 2 > expected->bit_count || claim.bit_count < expected->bit_count / 2) {
    return std::nullopt;
  }
  if (claim.hash_count > kMaxHashCount || claim.lines_per_lookup > 255) return std::nullopt;
  if (claim.array_bytes != whole_bytes(claim.bit_count)) return std::nullopt;
  Geometry geometry;
  geometry.bit_count = claim.bit_count;
  geometry.hash_count = static_cast<uint16_t>(claim.hash_count);
  geometry.lines_per_lookup = static_cast<uint8_t>(claim.lines_per_lookup);
  return geometry;
}

// The bits may be stored as whole words, of which the memory has as many.
bool fill(BitArray& bits, StringReader& array) {
  const uint64_t size = bits.bytes().size();
  if (array.size() < size || array.size() > bits.size_bytes()) return false;
  std::array<char, sizeof(uint64_t)> padding;
  const bool is_read =
      read_plain(array, bits, 0, size) && array.read(std::span(padding).first(array.size() - size));
  if (is_read) clear_spare_bits(bits.bytes(), bits.bit_count());
  return is_read;
}

// The rate that was asked for, of which RedisBloom gives the first layer a half if it may grow.
double redisbloom_rate(const FilterParameters& parameters, double first_layer_rate) {
  if (!parameters.is_scaling()) return first_layer_rate;
  return std::min(2 * first_layer_rate, std::nextafter(1.0, 0.0));
}

}  // namespace

uint64_t stored_array_bytes(const Geometry& geometry) {
  return geometry.is_rounded ? geometry.size_bytes() : whole_bytes(geometry.bit_count);
}

void clear_spare_bits(std::span<std::byte> array, uint64_t bit_count) {
  const uint64_t used_bits = bit_count % 8;
  if (used_bits != 0) array.back() &= static_cast<std::byte>((1U << used_bits) - 1);
}

void FilterBuilder::fail(std::string_view reason) {
  if (ok()) error_ = core::Error{std::string(reason)};
  left_bytes_ = 0;
}

bool FilterBuilder::reserve(uint64_t size_bytes) {
  if (!ok()) return false;
  if (size_bytes > left_bytes_) {
    fail(kDoesNotFit);
    return false;
  }
  left_bytes_ -= size_bytes;
  return true;
}

std::optional<Geometry> FilterBuilder::checked_geometry(const LayerClaim& claim) const {
  const bool has_room =
      layers_.empty() || (parameters.is_scaling() && layers_.size() < core::bloom::kMaxLayers);
  if (!has_room || !core::bloom::is_rate(claim.error_rate)) return std::nullopt;
  if (claim.capacity == 0 || claim.capacity > kMaxCapacity) return std::nullopt;
  if (claim.item_count > claim.capacity) return std::nullopt;
  switch (parameters.layout) {
    case LayoutId::kNative:
      return native_geometry(claim);
    case LayoutId::kRedisBloom:
      return redisbloom_geometry(claim, parameters.rounds_to_power_of_two);
    case LayoutId::kValkeyBloom:
      // Most of its forms say neither of older layers.
      if (!layers_.empty() && layers_.back().item_count != layers_.back().capacity) break;
      return valkeybloom_geometry(claim);
  }
  return std::nullopt;
}

std::optional<Geometry> FilterBuilder::accepted_geometry(LayerClaim& claim) {
  if (!ok()) return std::nullopt;
  bool is_possible = true;
  if (parameters.layout == LayoutId::kValkeyBloom) {
    // Most of its forms store none: it follows from the filter's.
    const double rate = layer_error_rate(parameters, static_cast<uint32_t>(layers_.size()));
    is_possible = is_close(claim.error_rate, rate);
    claim.error_rate = rate;
  }
  const auto geometry = is_possible ? checked_geometry(claim) : std::nullopt;
  if (!geometry) {
    fail(fmt::format("ERR layer {} of the filter is not one that its layout has", layers_.size()));
  }
  return geometry;
}

bool FilterBuilder::add_layer(LayerClaim claim) {
  const auto geometry = accepted_geometry(claim);
  if (!geometry) return false;
  auto bits = allocate(geometry->bit_count);
  if (!bits) return false;
  layers_.push_back(
      {*geometry, claim.capacity, claim.item_count, claim.error_rate, std::move(*bits)});
  return true;
}

bool FilterBuilder::add_layer(const LayerClaim& claim, StringReader& array) {
  if (!add_layer(claim)) return false;
  if (!fill(layers_.back().bits, array)) fail("ERR the bits of the filter are damaged");
  return ok();
}

bool FilterBuilder::add_layer_of_runs(const LayerClaim& claim, ModuleReader& runs) {
  if (!add_layer(claim)) return false;
  if (!read_runs(runs, layers_.back().bits)) fail("ERR the bits of the filter are damaged");
  return ok();
}

bool FilterBuilder::add_layer(LayerClaim claim, BitArray bits) {
  const auto geometry = accepted_geometry(claim);
  if (!geometry) return false;
  assert(bits.bit_count() == geometry->bit_count);
  layers_.push_back(
      {*geometry, claim.capacity, claim.item_count, claim.error_rate, std::move(bits)});
  return true;
}

void FilterBuilder::set_item_count(uint64_t item_count) {
  if (!ok() || layers_.empty()) return;
  if (item_count > layers_.back().capacity) return fail("ERR a layer of the filter is overfull");
  layers_.back().item_count = item_count;
}

std::optional<BitArray> FilterBuilder::allocate(uint64_t bit_count) {
  if (!reserve((bit_count + 63) / 64 * 8 + core::bloom::kLayerBytes)) return std::nullopt;
  auto bits = BitArray::allocate(bit_count);
  if (!bits) fail(kDoesNotFit);
  return bits;
}

core::Result<std::unique_ptr<core::bloom::ScalableFilter>> FilterBuilder::finish() {
  if (ok() && layers_.empty()) fail("ERR filter without layers");
  if (!ok()) return *error_;
  if (parameters.layout == LayoutId::kRedisBloom) {
    parameters.error_rate = redisbloom_rate(parameters, layers_.front().error_rate);
  }
  return core::bloom::ScalableFilter::assemble(parameters, std::move(layers_));
}

}  // namespace persistence
