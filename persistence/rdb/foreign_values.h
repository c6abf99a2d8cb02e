// SPDX-License-Identifier: MIT
//
// Values of types that this server does not have, which a snapshot may hold all the same: their
// names, and how to get past them.
//
// Invariants: a value that was skipped was read to its end and no further.
// Thread safety: as StreamReader.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <string>

#include "persistence/bytes/stream_reader.h"

namespace persistence {

// Type ids of 22 and above mean different things to Redis and to Valkey.
enum class RdbDialect : uint8_t { kRedis, kValkey };

// "list", "stream", or "type 28" when it has no name here.
std::string foreign_type_name(uint8_t type, RdbDialect dialect);

// Passes over the value after the key's name; the reader fails when the type's form is not known.
// Modules are none of its business.
void skip_foreign_value(StreamReader& reader, uint8_t type, RdbDialect dialect);

}  // namespace persistence
