// SPDX-License-Identifier: MIT
#include "core/keyspace/slot.h"

#include <array>
#include <cstddef>

#include "core/keyspace/key_hash.h"

namespace core::keyspace {
namespace {

constexpr uint16_t kPolynomial = 0x1021;

// The remainder of each byte, so that one step takes eight bits.
constexpr std::array<uint16_t, 256> kRemainders = [] {
  std::array<uint16_t, 256> table{};
  for (size_t byte = 0; byte < table.size(); ++byte) {
    auto remainder = static_cast<uint16_t>(byte << 8);
    for (int bit = 0; bit < 8; ++bit) {
      const bool carries = (remainder & 0x8000U) != 0;
      remainder = static_cast<uint16_t>(remainder << 1);
      if (carries) remainder ^= kPolynomial;
    }
    table[byte] = remainder;
  }
  return table;
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
  uint16_t crc = 0;
  for (const char c : bytes) {
    const auto index = static_cast<size_t>((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xff;
    crc = static_cast<uint16_t>((crc << 8) ^ kRemainders[index]);
  }
  return crc;
}

unsigned slot_of(std::string_view key) {
  return crc16(tag_of(key)) % kSlotCount;
}

uint64_t hash_by_slot(uint64_t hash, std::string_view key) {
  constexpr unsigned kShift = 64 - kStripeBits;
  const uint64_t stripe = stripe_of_slot(slot_of(key));
  return (hash & ((uint64_t{1} << kShift) - 1)) | stripe << kShift;
}

}  // namespace core::keyspace
