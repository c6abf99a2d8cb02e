// SPDX-License-Identifier: MIT
#include "persistence/bytes/byte_codec.h"

#include <liblzf/lzf.h>

#include <limits>
#include <memory>
#include <new>

#include "core/number.h"

namespace persistence {
namespace {

// The values of the two high bits in a length's first byte.
constexpr unsigned kShortLength = 0;
constexpr unsigned kMiddleLength = 1;
constexpr uint8_t kLength32 = 0x80;
constexpr uint8_t kLength64 = 0x81;

constexpr size_t kIntegerTextMax = 11;
// The shortest string that is compressed with LZF. Compression must also save at least
// kPackingGainMin bytes.
constexpr size_t kPackedSizeMin = 21;
constexpr size_t kPackingGainMin = 4;

}  // namespace

size_t encoded_length_bytes(uint8_t first) {
  if (first >> 6 == kMiddleLength) return 2;
  if (first == kLength32) return 5;
  return first == kLength64 ? 9 : 1;
}

std::string_view ByteReader::take(uint64_t count) {
  if (count > rest_.size()) {
    fail();
    return {};
  }
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

uint64_t ByteReader::big_endian(size_t byte_count) {
  uint64_t value = 0;
  for (const char byte : take(byte_count)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

uint64_t ByteReader::length() {
  const uint8_t first = u8();
  const unsigned low_bits = first & 0x3F;
  if (first >> 6 == kShortLength) return low_bits;
  if (first >> 6 == kMiddleLength) return low_bits << 8 | u8();
  if (first == kLength32) return big_endian(4);
  if (first == kLength64) return big_endian(8);
  fail();
  return 0;
}

void ByteWriter::big_endian(uint64_t value, size_t byte_count) {
  for (size_t i = byte_count; i-- > 0;) u8(static_cast<uint8_t>(value >> (8 * i)));
}

void ByteWriter::length(uint64_t value) {
  if (value < 1U << 6) return u8(static_cast<uint8_t>(value));
  if (value < 1U << 14) return big_endian(value | kMiddleLength << 14, 2);
  const bool is_long = value > std::numeric_limits<uint32_t>::max();
  u8(is_long ? kLength64 : kLength32);
  big_endian(value, is_long ? 8 : 4);
}

void ByteWriter::string(std::string_view text, Packing packing) {
  if (integer_string(text)) return;
  if (packing == Packing::kIfSmaller && packed_string(text)) return;
  length(text.size());
  bytes(text);
}

bool ByteWriter::integer_string(std::string_view text) {
  if (text.size() > kIntegerTextMax) return false;
  const auto value = core::parse_int64(text);
  if (!value || *value != static_cast<int32_t>(*value)) return false;
  const auto number32 = static_cast<int32_t>(*value);
  if (number32 == static_cast<int8_t>(number32)) {
    u8(static_cast<uint8_t>(SpecialString::kInt8));
    u8(static_cast<uint8_t>(number32));
  } else if (number32 == static_cast<int16_t>(number32)) {
    u8(static_cast<uint8_t>(SpecialString::kInt16));
    u16(static_cast<uint16_t>(number32));
  } else {
    u8(static_cast<uint8_t>(SpecialString::kInt32));
    u32(static_cast<uint32_t>(number32));
  }
  return true;
}

bool ByteWriter::packed_string(std::string_view text) {
  if (text.size() < kPackedSizeMin || text.size() > std::numeric_limits<unsigned>::max()) {
    return false;
  }
  const size_t room = text.size() - kPackingGainMin;
  const std::unique_ptr<char[]> packed(new (std::nothrow) char[room]);
  if (packed == nullptr) return false;
  const unsigned packed_size = lzf_compress(text.data(), static_cast<unsigned>(text.size()),
                                            packed.get(), static_cast<unsigned>(room));
  if (packed_size == 0) return false;
  u8(static_cast<uint8_t>(SpecialString::kLzf));
  length(packed_size);
  length(text.size());
  bytes({packed.get(), packed_size});
  return true;
}

}  // namespace persistence
