// SPDX-License-Identifier: MIT
//
// upsert: stores a value under a key, whether or not the key exists. Commands distinguish the two
// cases themselves.
//
// Thread safety: the caller must hold an exclusive lock of the key's stripe.
#pragma once

#include "core/keyspace/keyspace.h"

namespace core::keyspace {

// The live entry, or a new one with the empty string.
inline Entry& upsert(Keyspace& keyspace, unsigned database, const KeyRef& key, int64_t now_ms) {
  Entry* entry = keyspace.find_for_write(database, key, now_ms);
  return entry != nullptr ? *entry : keyspace.insert(database, key);
}

}  // namespace core::keyspace
