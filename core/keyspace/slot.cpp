// SPDX-License-Identifier: MIT
#include "core/keyspace/slot.h"

#include <array>
#include <cstddef>

#include "core/keyspace/key_hash.h"

namespace core::keyspace {
namespace {

constexpr uint16_t kPolynomial = 0x1021;

constexpr size_t kStride = 8;

// Of a byte with k bytes of zero behind it, in row k: one step takes eight bytes (Kounavis and
// Berry, "Novel table lookup-based algorithms for high-performance CRC generation", 2008).
using Remainders = std::array<std::array<uint16_t, 256>, kStride>;
constexpr Remainders kRemainders = [] {
  Remainders rows{};
  for (size_t byte = 0; byte < rows[0].size(); ++byte) {
    auto remainder = static_cast<uint16_t>(byte << 8);
    for (auto& row : rows) {
      for (int bit = 0; bit < 8; ++bit) {
        const bool carries = (remainder & 0x8000U) != 0;
        remainder = static_cast<uint16_t>(remainder << 1);
        if (carries) remainder ^= kPolynomial;
      }
      row[byte] = remainder;
    }
  }
  return rows;
}();

// What of the name is hashed.
std::string_view tag_of(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

uint16_t crc16(std::string_view bytes) {
  unsigned crc = 0;
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(bytes[index]); };
  for (; bytes.size() >= kStride; bytes.remove_prefix(kStride)) {
    unsigned next = kRemainders[7][byte(0) ^ (crc >> 8)] ^ kRemainders[6][byte(1) ^ (crc & 0xff)];
    for (size_t i = 2; i < kStride; ++i) next ^= kRemainders[kStride - 1 - i][byte(i)];
    crc = next;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    crc = ((crc << 8) & 0xffff) ^ kRemainders[0][(crc >> 8) ^ byte(i)];
  }
  return static_cast<uint16_t>(crc);
}

unsigned slot_of(std::string_view key) {
  return crc16(tag_of(key)) % kSlotCount;
}

uint64_t hash_by_slot(uint64_t hash, std::string_view key) {
  constexpr uint64_t kOwnBits = (uint64_t{0xff} << kTagShift) | ((uint64_t{1} << kSlotShift) - 1);
  const unsigned slot = slot_of(key);
  return (hash & kOwnBits) | uint64_t{slot / kStripeCount} << kSlotShift |
         uint64_t{stripe_of_slot(slot)} << kStripeShift;
}

}  // namespace core::keyspace
