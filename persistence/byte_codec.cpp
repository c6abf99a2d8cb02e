// SPDX-License-Identifier: MIT
#include "persistence/byte_codec.h"

#include <liblzf/lzf.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>

#include "core/number.h"

namespace persistence {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie");

// The two high bits of a length's first byte.
constexpr unsigned kShortLength = 0;
constexpr unsigned kMiddleLength = 1;
constexpr unsigned kSpecial = 3;
constexpr uint8_t kLength32 = 0x80;
constexpr uint8_t kLength64 = 0x81;
// Strings in other forms.
constexpr uint8_t kSpecialMark = 0xC0;
constexpr unsigned kInt8 = 0;
constexpr unsigned kInt16 = 1;
constexpr unsigned kInt32 = 2;
constexpr unsigned kLzf = 3;

constexpr size_t kIntegerTextMax = 11;
// Shorter ones are not worth the try, and packing must save this much.
constexpr size_t kPackedSizeMin = 21;
constexpr size_t kPackingGainMin = 4;
// Three bytes of LZF give at most 264: a payload that claims more lies.
constexpr uint64_t kLzfRatioMax = 88;

}  // namespace

StoredString StoredString::integer(int32_t value) {
  StoredString result;
  result.is_integer_ = true;
  char* first = result.digits_.data();
  const auto end = std::to_chars(first, first + result.digits_.size(), value);
  result.size_ = static_cast<uint64_t>(end.ptr - first);
  return result;
}

bool StoredString::unpack(std::span<char> out) const {
  assert(out.size() == size_);
  if (!packed_) {
    std::ranges::copy(view(), out.begin());
    return true;
  }
  // Sizes beyond 32 bits were refused when the string was read.
  const auto written = lzf_decompress(bytes_.data(), static_cast<unsigned>(bytes_.size()),
                                      out.data(), static_cast<unsigned>(out.size()));
  return written == out.size();
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

template <class Number>
Number ByteReader::number() {
  Number value{};
  const std::string_view bytes = take(sizeof(Number));
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(Number));
  return value;
}
template uint8_t ByteReader::number();
template uint16_t ByteReader::number();
template uint32_t ByteReader::number();
template uint64_t ByteReader::number();
template int64_t ByteReader::number();
template double ByteReader::number();

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

StoredString ByteReader::string() {
  if (rest_.empty()) {
    fail();
    return {};
  }
  const auto first = static_cast<uint8_t>(rest_.front());
  if (first >> 6 != kSpecial) return StoredString::plain(take(length()));
  u8();
  const StoredString stored = special_string(first & 0x3F);
  return ok_ ? stored : StoredString();
}

StoredString ByteReader::special_string(unsigned kind) {
  switch (kind) {
    case kInt8:
      return StoredString::integer(static_cast<int8_t>(u8()));
    case kInt16:
      return StoredString::integer(static_cast<int16_t>(u16()));
    case kInt32:
      return StoredString::integer(static_cast<int32_t>(u32()));
    case kLzf:
      return packed_string();
    default:
      fail();
      return {};
  }
}

StoredString ByteReader::packed_string() {
  const uint64_t packed_size = length();
  const uint64_t size = length();
  const std::string_view bytes = take(packed_size);
  const bool is_possible = size > 0 && size <= std::numeric_limits<unsigned>::max() &&
                           size <= bytes.size() * kLzfRatioMax;
  if (!is_possible) {
    fail();
    return {};
  }
  return StoredString::packed(bytes, size);
}

template <class Number>
void ByteWriter::number(Number value) {
  std::array<char, sizeof(Number)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(Number));
  out_.append(bytes.data(), bytes.size());
}
template void ByteWriter::number(uint8_t);
template void ByteWriter::number(uint16_t);
template void ByteWriter::number(uint32_t);
template void ByteWriter::number(uint64_t);
template void ByteWriter::number(int64_t);
template void ByteWriter::number(double);

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
    u8(kSpecialMark | kInt8);
    u8(static_cast<uint8_t>(number32));
  } else if (number32 == static_cast<int16_t>(number32)) {
    u8(kSpecialMark | kInt16);
    u16(static_cast<uint16_t>(number32));
  } else {
    u8(kSpecialMark | kInt32);
    u32(static_cast<uint32_t>(number32));
  }
  return true;
}

bool ByteWriter::packed_string(std::string_view text) {
  if (text.size() < kPackedSizeMin || text.size() > std::numeric_limits<unsigned>::max()) {
    return false;
  }
  const size_t room = text.size() - kPackingGainMin;
  const std::unique_ptr<char[]> packed(new char[room]);
  const unsigned packed_size = lzf_compress(text.data(), static_cast<unsigned>(text.size()),
                                            packed.get(), static_cast<unsigned>(room));
  if (packed_size == 0) return false;
  u8(kSpecialMark | kLzf);
  length(packed_size);
  length(text.size());
  bytes({packed.get(), packed_size});
  return true;
}

}  // namespace persistence
