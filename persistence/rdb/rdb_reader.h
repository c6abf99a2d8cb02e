// SPDX-License-Identifier: MIT
//
// read_rdb: hands what a snapshot holds to a visitor, key by key.
//
// Files of Redis (versions 1 to 12 and what is compatible above) and Valkey (80 and above) are
// read. Values that this server has no type for are skipped and named, or refused.
//
// Invariants: the bytes come in by pieces; the bits of a filter are read straight into their final
// place. Nothing is allocated for a length that the source's bound or the budget does not cover.
// What was read before an error has been handed over: the visitor's owner throws it away.
// With more threads than one the caller's thread finds where keys begin and end, and all threads
// decode them and call the visitor's entry(), in no order. What is at fault in a damaged source
// is then told by a second reading with one thread alone.
// Thread safety: a pure function of its source; calls the visitor on the caller's thread, but for
// entry() with several threads.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "persistence/bytes/byte_stream.h"
#include "persistence/rdb/rdb_writer.h"

namespace persistence {

class RdbVisitor {
 public:
  virtual ~RdbVisitor() = default;
  // An error of the visitor ends the reading and comes back with the offset before it.
  virtual core::Result<> aux(std::string_view /*name*/, std::string_view /*value*/) { return {}; }
  // How many keys a database is about to get: a hint, not to be trusted.
  virtual void size_hint(uint64_t /*database*/, uint64_t /*keys*/, uint64_t /*expires*/) {}
  // A string or a filter with its name and expiry, which may have passed; it was last used before
  // the time 0 of a clock that the visitor sets. Whether the database
  // exists and the key is new are the visitor's questions.
  virtual core::Result<> entry(uint64_t database, core::keyspace::EntryPtr entry) = 0;
  // Something skipped, by the name of its type: "list", "module CMSk-TYPE", "function library".
  virtual void foreign(uint64_t /*database*/, std::string_view /*type*/) {}
};

// `rdb-foreign-types`
enum class ForeignTypes : uint8_t { kRefuse, kSkip };

struct RdbReadOptions {
  ForeignTypes foreign_types = ForeignTypes::kRefuse;
  bool checks_sum = true;
  // Without: entries come with their names and expiries alone, their values are passed over. What
  // a value's own bytes hold is then not looked at.
  bool builds_values = true;
  // Bytes behind the end are an error, unless something else follows there: the commands of an
  // old append log, a replication stream.
  bool may_be_followed = false;
  size_t buffer_bytes = size_t{256} << 10;
  // More than one: entry() is called by as many, and the budget asked.
  unsigned thread_count = 1;
  // Called after each piece that came in, on the caller's thread.
  RdbProgressCallback on_progress;
};

struct RdbReadResult {
  bool is_valkey = false;
  unsigned version = 0;
  bool has_sum = false;  // false: written without one
  uint64_t sum = 0;
  // Of the container, footer included, and of the entries handed over.
  RdbProgress total;
  uint64_t foreign_keys = 0;
  // What was read from the source beyond the container. Empty unless may_be_followed.
  std::string read_ahead;
};

// Errors: "offset 123: string is longer than the file" and the like; kValueDoesNotFit at the end
// when `budget` refuses, or the system.
inline constexpr std::string_view kValueDoesNotFit = "a value does not fit in memory";
core::Result<RdbReadResult> read_rdb(ByteSource& source, RdbVisitor& visitor,
                                     const core::MemoryBudget& budget,
                                     const RdbReadOptions& options);

}  // namespace persistence
