// SPDX-License-Identifier: MIT
//
// Reads a key's string value from its RDB encoding directly into an entry.
//
// Invariants: the entry has the encoding that SET of the same text would give it.
// Thread safety: one thread at a time may use the entry, which is not in a keyspace yet.
// Source: docs/formats.md, "Lengths and strings".
#pragma once

#include <cstdint>

#include "core/keyspace/entry.h"
#include "persistence/bytes/stream_reader.h"

namespace persistence {

// The outcome of reading a string. kDamaged: the reader has the error. kNoMemory: the allocation
// failed.
enum class StringOutcome : uint8_t { kRead, kDamaged, kNoMemory };

// Reads all of `text` into the entry. The caller must have checked the memory budget.
[[nodiscard]] StringOutcome read_string_value(StringReader& text, core::keyspace::Entry& entry);

}  // namespace persistence
