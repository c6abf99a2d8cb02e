// SPDX-License-Identifier: MIT
//
// Slots: the 16384 parts into which Redis Cluster cuts the keys, by which its clients choose a
// server.
//
// A key's slot is the CRC16 of its name modulo 16384. Of a name that holds `{` and, behind it, `}`
// with something in between, only what stands between the first two of them counts: keys with the
// same tag lie in one slot.
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
// The same on a processor without a carry-less product.
uint16_t crc16_by_tables(std::string_view bytes);

unsigned slot_of(std::string_view key);

}  // namespace core::keyspace
