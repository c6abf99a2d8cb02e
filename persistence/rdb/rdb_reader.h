// SPDX-License-Identifier: MIT
//
// read_rdb: passes the content of a snapshot to a visitor, key by key.
//
// Supports files of Redis (versions 1 to 12 and compatible later ones) and Valkey (80 and above).
// Values whose type this server does not support are either skipped and reported, or rejected.
//
// Invariants: the source is read in pieces; the bits of a filter are read directly into its arrays.
// Nothing is allocated for a length that exceeds the source's size_bound() or the budget; strings
// below 64 KiB are not checked against the budget. After an error the caller must discard the
// values that the visitor has received. With several threads the caller's thread finds the
// boundaries of the keys. All threads decode keys and call the visitor's entry(), in no defined
// order. If the source is damaged, the returned error might not be the first one in the file. A
// caller that needs the first error reads the source again with one thread.
// Thread safety: the functions keep no state. read_rdb() calls the visitor on the caller's thread.
// If thread_count is above 1, several threads may call the visitor's entry() at the same time.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/memory/memory_budget.h"
#include "core/result.h"
#include "persistence/bytes/byte_stream.h"
#include "persistence/rdb/rdb_writer.h"

namespace persistence {

class RdbVisitor {
 public:
  virtual ~RdbVisitor() = default;
  // If the visitor returns an error, read_rdb() stops and returns that error. The returned text
  // begins with the offset in the snapshot.
  virtual core::Result<> aux(std::string_view /*name*/, std::string_view /*value*/) { return {}; }
  // Called with the expected number of keys of a database: a hint that may be wrong.
  virtual void size_hint(uint64_t /*database*/, uint64_t /*keys*/, uint64_t /*expires*/) {}
  // Called for each string or filter, with its name and expiry, which may have passed. The reader
  // does not know the current time, so it stores minus the key's idle time as the access time. The
  // visitor must add the current time of its access clock. The visitor must also check that the
  // database exists and that the key is new.
  virtual core::Result<> entry(uint64_t database, core::keyspace::EntryPtr entry) = 0;
  // Called for each skipped value, with the name of its type: "list", "module CMSk-TYPE", "function
  // library".
  virtual void foreign(uint64_t /*database*/, std::string_view /*type*/) {}
};

// The choices of the option `rdb-foreign-types`.
enum class ForeignTypes : uint8_t { kRefuse, kSkip };

struct RdbReadOptions {
  ForeignTypes foreign_types = ForeignTypes::kRefuse;
  bool checks_sum = true;
  // If false, values are skipped without a check, and entries have only their names and expiries.
  bool builds_values = true;
  // True if bytes may follow the snapshot: the commands of an old append log, or a replication
  // stream. If false, such bytes are an error.
  bool may_be_followed = false;
  size_t buffer_bytes = size_t{256} << 10;
  // The number of threads that decode keys. Each of them calls the visitor's entry() and asks
  // the memory budget for room.
  unsigned thread_count = 1;
  // Called on the caller's thread after each piece of the file that was read.
  RdbProgressCallback on_progress;
};

struct RdbReadResult {
  bool is_valkey = false;
  unsigned version = 0;
  bool has_sum = false;  // True if the file has a checksum.
  // The number of bytes of the snapshot, including its footer, and the number of entries that the
  // visitor received.
  RdbProgress total;
};

// Reads the snapshot. Errors: a text such as "offset 123: a string is longer than the remaining
// bytes". The code is kOutOfMemory if `budget` refuses the memory for a value, or an allocation
// fails. The code is kUnsupported for values of foreign types, unless the options skip such values.
inline constexpr std::string_view kValueDoesNotFit = "a value does not fit in memory";
core::Result<RdbReadResult> read_rdb(ByteSource& source, RdbVisitor& visitor,
                                     const core::MemoryBudget& budget,
                                     const RdbReadOptions& options);

}  // namespace persistence
