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
#include <optional>
#include <string>
#include <unordered_map>

#include "persistence/bytes/stream_reader.h"

namespace persistence {

// Type ids of 22 and above mean different things to Redis and to Valkey.
enum class RdbDialect : uint8_t { kRedis, kValkey };

// "list", "stream", or "type 28" when it has no name here.
std::string foreign_type_name(uint8_t type, RdbDialect dialect);

// Whether skip_foreign_value() knows the form of the type.
bool can_skip_foreign(uint8_t type, RdbDialect dialect);

// The templates that a snapshot of Redis 8.10 defines before its keys. A hash of a template holds
// values only, so how many it has is the template's matter.
class HashTemplates {
 public:
  // Reads one after its opcode.
  void read(StreamReader& reader);
  // Nothing for a template that was not defined.
  std::optional<uint64_t> field_count(uint64_t id) const;

 private:
  std::unordered_map<uint64_t, uint64_t> field_counts_;
};

// Passes over the value after the key's name. The reader fails when the type's form is not known,
// and at a template that is not. Not for values of modules.
void skip_foreign_value(StreamReader& reader, uint8_t type, RdbDialect dialect,
                        const HashTemplates& templates = {});

// Passes over what modules keep of a key of Redis 8.6, after its opcode.
void skip_key_meta(StreamReader& reader);

}  // namespace persistence
