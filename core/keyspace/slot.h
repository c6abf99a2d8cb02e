// SPDX-License-Identifier: MIT
//
// Slots: the 16384 parts into which Redis Cluster divides the keys. Clients choose a server by
// slot.
//
// A key's slot is the CRC16 of its name modulo 16384. If the name contains `{` and a later `}` with
// text between, only the text between the first such pair is hashed. So keys with the same tag are
// in one slot.
// Thread safety: pure functions.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

namespace core::keyspace {

inline constexpr unsigned kSlotCount = 16384;
using SlotSet = std::bitset<kSlotCount>;

// CRC-16/XMODEM: polynomial 0x1021, start value 0, bits not reflected.
uint16_t crc16(std::string_view bytes);
// Computes the checksum of crc16() by table lookups, for processors without a carry-less product.
uint16_t crc16_by_tables(std::string_view bytes);

unsigned slot_of(std::string_view key);

}  // namespace core::keyspace
