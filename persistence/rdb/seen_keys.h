// SPDX-License-Identifier: MIT
//
// SeenKeys: detects a key that occurs twice in a snapshot whose keys are not kept.
//
// Invariants: a key is known by a 128-bit hash, because hashes need less memory than names.
// Thread safety: one thread at a time may use an object.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <fmt/format.h>

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/bloom/hash.h"
#include "core/result.h"

namespace persistence {

inline core::Error duplicate_key(uint64_t database) {
  return {fmt::format("a key of database {} occurs twice", database), core::ErrorCode::kDamaged};
}

class SeenKeys {
 public:
  // Records the key. Errors: duplicate_key() if the database already has the key.
  core::Result<> insert(uint64_t database, std::string_view name) {
    const std::string place = fmt::format("{} {}", database, name);
    if (!hashes_.insert(core::bloom::hash_native(place)).second) return duplicate_key(database);
    return {};
  }

 private:
  struct HashOfHash {
    size_t operator()(const core::bloom::ItemHash& hash) const { return hash.first; }
  };
  boost::unordered_flat_set<core::bloom::ItemHash, HashOfHash> hashes_;
};

}  // namespace persistence
