// SPDX-License-Identifier: MIT
//
// Computes CRC-64 "Jones", the checksum at the end of snapshots and DUMP payloads.
//
// Invariants: crc64(crc64(0, a), b) == crc64(0, a + b); crc64(0, "123456789") is E9C6D914C4B8D9CA.
// Thread safety: pure functions.
// Source: docs/formats.md, "Checksum".
#pragma once

#include <cstdint>
#include <string_view>

namespace persistence {

// Extends the checksum `crc`, initially 0, by `bytes`.
uint64_t crc64(uint64_t crc, std::string_view bytes);

}  // namespace persistence
