// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_loader.h"

#include "core/keyspace/key_use.h"
#include "core/keyspace/keyspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "persistence/rdb/seen_keys.h"

namespace persistence {

core::Result<> KeyspaceLoader::aux(std::string_view name, std::string_view value) {
  aux_.insert_or_assign(std::string(name), std::string(value));
  return {};
}

void KeyspaceLoader::size_hint(uint64_t database, uint64_t keys, uint64_t /*expires*/) {
  // Limit on the number of keys for which a table reserves memory at once. A larger hint in a
  // snapshot is not trusted, so the table grows while keys arrive.
  constexpr uint64_t kReservedKeysMax = uint64_t{1} << 26;
  if (database >= keyspace_.database_count()) return;
  const auto stripes =
      keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
  keyspace_.reserve(static_cast<unsigned>(database), std::min(keys, kReservedKeysMax));
}

core::Result<> KeyspaceLoader::entry(uint64_t database, core::keyspace::EntryPtr entry) {
  if (database >= keyspace_.database_count()) {
    return core::Error{fmt::format("database {} does not exist: `databases` is {}", database,
                                   keyspace_.database_count()),
                       core::ErrorCode::kUnsupported};
  }
  if (entry->expired(now_ms_)) {
    ++expired_keys_;
    return {};
  }
  entry->touch(access_clock_s_ + core::keyspace::KeyUse(*entry).clock_s());
  const auto index = static_cast<unsigned>(database);
  const core::keyspace::KeyRef key = keyspace_.ref(entry->key());
  const auto lock = keyspace_.lock_exclusive(key);
  if (keyspace_.put(index, key, std::move(entry)) != nullptr) {
    return duplicate_key(database);
  }
  ++loaded_keys_;
  return {};
}

void KeyspaceLoader::foreign(uint64_t /*database*/, std::string_view type) {
  ++foreign_types_[std::string(type)];
}

}  // namespace persistence
