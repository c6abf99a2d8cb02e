// SPDX-License-Identifier: MIT
//
// Names and skips values in snapshots whose types this server does not support.
//
// Invariants: a skipped value was read exactly to its end.
// Thread safety: none; a StreamReader has one user at a time.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "persistence/bytes/stream_reader.h"

namespace persistence {

// Type ids of 22 and above have different meanings in Redis and Valkey.
enum class RdbDialect : uint8_t { kRedis, kValkey };

// Returns the name of a type, such as "list" or "stream". For an unknown type the name is, for
// example, "type 40".
std::string foreign_type_name(uint8_t type, RdbDialect dialect);

// Returns whether skip_foreign_value() knows how values of the type are encoded.
bool can_skip_foreign(uint8_t type, RdbDialect dialect);

// HashTemplates: the templates that a snapshot of Redis 8.10 defines before its keys. A hash with a
// template stores only values, as many as the template has fields.
class HashTemplates {
 public:
  // Reads the definition of a template. REQUIRES: the reader has consumed the opcode that
  // introduces the definition.
  void read(StreamReader& reader);
  // Returns the number of fields of the template; nullopt if the snapshot has not defined the
  // template.
  std::optional<uint64_t> field_count(uint64_t id) const;

 private:
  std::unordered_map<uint64_t, uint64_t> field_counts_;
};

// Skips the value that follows the key's name. The reader fails if this server does not know how
// `type` is encoded, or if the value uses a template that `templates` does not have. Must not be
// called for values of modules.
void skip_foreign_value(StreamReader& reader, uint8_t type, RdbDialect dialect,
                        const HashTemplates& templates = {});

// Skips module metadata of a key of Redis 8.6. REQUIRES: the reader has consumed the opcode that
// introduces the metadata.
void skip_key_meta(StreamReader& reader);

}  // namespace persistence
