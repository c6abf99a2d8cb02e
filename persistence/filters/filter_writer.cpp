// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_writer.h"

#include <bit>
#include <span>

#include "core/bloom/redisbloom_layout.h"
#include "persistence/filters/bit_array_codec.h"

namespace persistence {

using core::bloom::BitArray;
using core::bloom::RedisBloomLayout;
using core::bloom::ScalableFilter;

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
  claim.cell_bits = info.geometry.cell_bits;
  // RedisBloom requires that bits per item and hash count agree. The logarithm of the machine that
  // sized the layer may differ from this machine's. So the bits per item are derived from the
  // layer's hash count.
  claim.bits_per_item = RedisBloomLayout::bits_per_item(info.error_rate, claim.hash_count)
                            .value_or(RedisBloomLayout::bits_per_item(info.error_rate));
  if (info.geometry.is_rounded) {
    claim.exponent = static_cast<uint64_t>(std::countr_zero(info.geometry.bit_count));
    // For an array smaller than one word, RedisBloom includes the padding in the bit count.
    claim.bit_count = claim.array_bytes * 8;
  }
  return claim;
}

std::string_view stored_array(const ScalableFilter& filter, size_t index, std::string& padded) {
  const std::span<const std::byte> array = filter.layer_bits(index).bytes();
  const std::string_view bytes(reinterpret_cast<const char*>(array.data()), array.size());
  const uint64_t stored_bytes = stored_array_bytes(filter.layer_info(index).geometry);
  if (stored_bytes == bytes.size()) return bytes;
  padded.assign(bytes);
  padded.resize(stored_bytes);
  return padded;
}

void FilterWriter::array_behind(std::string_view head, const ScalableFilter& filter, size_t index) {
  const BitArray& bits = filter.layer_bits(index);
  const bool is_packed = packing_of(bits) == Packing::kIfSmaller;
  if (!bits.is_mapped()) {
    const std::string_view array = stored_array(filter, index, padded_);
    if (is_packed) return string(std::string(head).append(array), packing_);
    plain_string_head(head, array.size());
    return writer_.bytes(array);
  }
  const uint64_t array_bytes = bits.bytes().size();
  if (is_packed) {
    std::string whole(head);
    ByteWriter copy(whole);
    write_plain(copy, bits, 0, array_bytes);
    return string(whole, packing_);
  }
  plain_string_head(head, array_bytes);
  write_plain(writer_, bits, 0, array_bytes);
}

void FilterWriter::runs(const ScalableFilter& filter, size_t index) {
  write_runs(writer_, *this, filter.layer_bits(index));
}

void FilterWriter::plain_string_head(std::string_view head, uint64_t array_bytes) {
  string_head(head.size() + array_bytes);
  writer_.bytes(head);
}

// LZF compression reads the bytes several times and needs a copy of them. If another process sets
// bits between two reads, the result may lack bits that were set before. So arrays that processes
// share are not compressed.
Packing FilterWriter::packing_of(const BitArray& bits) const {
  return writer_.is_chunked() && bits.is_mapped() ? Packing::kNever : packing_;
}

}  // namespace persistence
