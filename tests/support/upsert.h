// SPDX-License-Identifier: MIT
//
// upsert: a test helper that finds the entry of a key or creates it. Commands do not use it,
// because they must know whether the key existed.
//
// Thread safety: the caller must hold an exclusive lock of the key's stripe.
#pragma once

#include "core/keyspace/keyspace.h"

namespace core::keyspace {

// Returns the unexpired entry of the key. If there is none, creates one with the empty string.
inline Entry& upsert(Keyspace& keyspace, unsigned database, const KeyRef& key, int64_t now_ms) {
  Entry* entry = keyspace.find_for_write(database, key, now_ms);
  return entry != nullptr ? *entry : keyspace.insert(database, key);
}

}  // namespace core::keyspace
