// SPDX-License-Identifier: MIT
//
// Snapshots for tests: whole keyspaces as comparable values, and snapshots composed by hand.
//
// Thread safety: belongs to one thread; takes no locks.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/keyspace/keyspace.h"
#include "persistence/bytes/crc64.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/rdb/rdb_format.h"
#include "persistence/rdb/rdb_loader.h"
#include "tests/support/memory_streams.h"

namespace snapshots {

using core::keyspace::Entry;
using core::keyspace::Keyspace;

struct Value {
  std::string bytes;     // text of a string, or module value of a filter
  std::string encoding;  // result of OBJECT ENCODING; empty for filters
  int64_t expires_at_ms = 0;
  bool operator==(const Value&) const = default;
};
using Contents = std::map<std::pair<unsigned, std::string>, Value>;

inline std::string bytes_of(const Entry& entry) {
  if (entry.is_string()) {
    core::keyspace::IntegerText scratch;
    return std::string(entry.text(scratch));
  }
  std::string bytes;
  persistence::ByteWriter writer(bytes);
  persistence::encode_filter(writer, entry.filter(), persistence::Packing::kNever);
  return bytes;
}

inline Contents contents(const Keyspace& keyspace) {
  Contents all;
  for (unsigned database = 0; database < keyspace.database_count(); ++database) {
    keyspace.for_each(database, [&](const Entry& entry) {
      const std::string encoding(entry.is_string() ? entry.encoding() : std::string_view());
      all[{database, std::string(entry.key())}] = {bytes_of(entry), encoding,
                                                   entry.expires_at_ms()};
    });
  }
  return all;
}

inline core::Result<persistence::RdbReadResult> load(
    std::string_view bytes, Keyspace& keyspace, const persistence::RdbReadOptions& options = {},
    const core::MemoryBudget& budget = core::UnlimitedMemory()) {
  persistence::MemorySource source(bytes);
  persistence::KeyspaceLoader loader(keyspace, core::keyspace::kIgnoreExpiry);
  return persistence::read_rdb(source, loader, budget, options);
}

// A snapshot, built record by record.
class Container : public persistence::ByteWriter {
 public:
  explicit Container(std::string_view header = "REDIS0010") : ByteWriter(text_) { bytes(header); }
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  void text(std::string_view value) { string(value, persistence::Packing::kNever); }
  void string_key(std::string_view key, std::string_view value) {
    u8(0);
    text(key);
    text(value);
  }
  // Writes the type byte and the key's name. The value follows.
  void key(uint8_t type, std::string_view name) {
    u8(type);
    text(name);
  }
  std::string sealed() {
    u8(persistence::rdb::kEnd);
    u64(persistence::crc64(0, text_));
    return text_;
  }

 private:
  std::string text_;
};

}  // namespace snapshots
