// SPDX-License-Identifier: MIT
//
// Strings of keys, from their stored form straight into an entry.
//
// Invariants: the entry has the encoding that SET of the same text would have given it.
// Thread safety: the entry is in no keyspace yet.
// Source: docs/formats.md, "Lengths and strings".
#pragma once

#include <cstdint>

#include "core/keyspace/entry.h"
#include "persistence/bytes/stream_reader.h"

namespace persistence {

// kDamaged: the reader says why. kNoMemory: the system refuses.
enum class StringOutcome : uint8_t { kRead, kDamaged, kNoMemory };

// Reads all of `text`; asking whether so much may be had is the caller's duty.
[[nodiscard]] StringOutcome read_string_value(StringReader& text, core::keyspace::Entry& entry);

}  // namespace persistence
