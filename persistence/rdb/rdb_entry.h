// SPDX-License-Identifier: MIT
//
// RdbEntryReader: reads one key of a snapshot, its name and its value, as an Entry.
//
// Invariants: nothing is allocated for a length that exceeds the reader's left_bound() or the
// budget; strings below 64 KiB are not checked against the budget. After a fault the reader holds
// the error, and no entry is returned.
// Thread safety: one thread at a time may use an object. Several objects may work in parallel.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/memory/memory_budget.h"
#include "persistence/bytes/stream_reader.h"

namespace persistence {

inline constexpr std::string_view kKeyNameTooLong = "a key's name is too long";

// RdbKeyAttributes: the attributes that are stored before a key.
struct RdbKeyAttributes {
  uint64_t database = 0;
  int64_t expires_at_ms = core::keyspace::kNoExpiry;
  uint64_t idle_s = 0;
  uint8_t use_count = core::keyspace::kFirstUseCount;

  // Applies all attributes except the database to the entry.
  void apply_to(core::keyspace::Entry& entry) const;
};

class RdbEntryReader {
 public:
  // `reader` and `budget` must outlive the object. If `builds_values` is false, entries have only
  // their names.
  RdbEntryReader(StreamReader& reader, const core::MemoryBudget& budget, bool builds_values)
      : reader_(reader), budget_(budget), builds_values_(builds_values) {}

  std::string name();
  // Reads a string value, which follows the key's name. Returns null after a fault.
  core::keyspace::EntryPtr string(const std::string& name);
  // Reads a filter whose module id was already read. REQUIRES: `id` belongs to a filter module.
  core::keyspace::EntryPtr filter(const std::string& name, uint64_t id);

 private:
  bool fits(uint64_t size);
  void fail_for_memory();

  StreamReader& reader_;
  const core::MemoryBudget& budget_;
  const bool builds_values_;
};

}  // namespace persistence
