// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_loader.h"

#include "core/keyspace/eviction/key_use.h"
#include "core/keyspace/keyspace.h"

#include <fmt/format.h>

#include <utility>

namespace persistence {

core::Result<> KeyspaceLoader::aux(std::string_view name, std::string_view value) {
  aux_.insert_or_assign(std::string(name), std::string(value));
  return {};
}

core::Result<> KeyspaceLoader::entry(uint64_t database, core::keyspace::EntryPtr entry) {
  if (database >= keyspace_.database_count()) {
    return core::Error{fmt::format("database {} does not exist: `databases` is {}", database,
                                   keyspace_.database_count())};
  }
  if (entry->expired(now_ms_)) {
    ++expired_keys_;
    return {};
  }
  entry->touch(access_clock_s_ + core::keyspace::KeyUse(*entry).clock_s());
  const auto index = static_cast<unsigned>(database);
  const core::keyspace::KeyRef key = keyspace_.ref(entry->key());
  const auto lock = keyspace_.lock_exclusive(key);
  if (keyspace_.find_any(index, key) != nullptr) {
    return core::Error{fmt::format("a key of database {} occurs twice", database)};
  }
  keyspace_.put(index, key, std::move(entry));
  ++loaded_keys_;
  return {};
}

void KeyspaceLoader::foreign(uint64_t /*database*/, std::string_view type) {
  ++foreign_types_[std::string(type)];
}

}  // namespace persistence
