// SPDX-License-Identifier: MIT
#include "server/replication/replica/snapshot_check.h"

#include <fmt/format.h>

#include "core/memory/memory_budget.h"
#include "core/number.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_format.h"
#include "persistence/rdb/rdb_reader.h"
#include "persistence/rdb/seen_keys.h"

namespace server {
namespace {

class Checker final : public persistence::RdbVisitor {
 public:
  Checker(uint64_t database_count, bool remembers_keys)
      : database_count_(database_count), remembers_keys_(remembers_keys) {}

  core::Result<> aux(std::string_view name, std::string_view value) override {
    if (name == persistence::rdb::kBloomeryVersionAux) is_ours_ = true;
    if (name == persistence::rdb::kForeignStreamAux) is_foreign_ = value != "0";
    if (name == persistence::rdb::kStreamDatabaseAux) {
      facts_.stream_database = core::parse_int64(value).value_or(0);
    }
    return {};
  }

  core::Result<> entry(uint64_t database, core::keyspace::EntryPtr entry) override {
    if (database >= database_count_) {
      return core::Error{fmt::format("there is no database {} here, see `databases`", database)};
    }
    return remembers_keys_ ? seen_.insert(database, entry->key()) : core::Result<>{};
  }

  SnapshotFacts facts() const {
    SnapshotFacts facts = facts_;
    facts.has_own_stream = is_ours_ && !is_foreign_;
    // Redis writes repl-stream-db as -1 if its stream has selected no database.
    const bool is_there = facts.stream_database >= 0 &&
                          static_cast<uint64_t>(facts.stream_database) < database_count_;
    if (!is_there) facts.stream_database = 0;
    return facts;
  }

 private:
  const uint64_t database_count_;
  const bool remembers_keys_;
  SnapshotFacts facts_;
  bool is_ours_ = false;
  bool is_foreign_ = false;
  persistence::SeenKeys seen_;
};

// The memory budget applies to each value alone, because a checked value is freed before the next
// value is read.
class ValueBudget final : public core::MemoryBudget {
 public:
  explicit ValueBudget(uint64_t value_bytes_max) : value_bytes_max_(value_bytes_max) {}
  uint64_t available_bytes() const override { return value_bytes_max_; }

 private:
  const uint64_t value_bytes_max_;
};

core::Result<SnapshotFacts> read_snapshot(persistence::FileSystem& files, const std::string& path,
                                          const SnapshotCheck& check, bool builds_values) {
  const auto file = files.open_input(path);
  if (!file) return file.error();
  persistence::RdbReadOptions options;
  options.foreign_types = check.skips_foreign_types ? persistence::ForeignTypes::kSkip
                                                    : persistence::ForeignTypes::kRefuse;
  options.checks_sum = check.checks_sum;
  options.builds_values = builds_values;
  options.on_progress = [&check](const persistence::RdbProgress&) { check.on_piece(); };
  Checker checker(check.database_count, builds_values);
  const ValueBudget budget(check.loaded_bytes_max);
  const auto read = persistence::read_rdb(**file, checker, budget, options);
  if (!read) return read.error();
  return checker.facts();
}

}  // namespace

core::Result<SnapshotFacts> check_snapshot(persistence::FileSystem& files, const std::string& path,
                                           const SnapshotCheck& check) {
  auto size_bytes = files.size_bytes(path);
  if (!size_bytes) return size_bytes.error();
  if (*size_bytes <= check.loaded_bytes_max) {
    auto facts = read_snapshot(files, path, check, true);
    if (facts || facts.error().code != core::ErrorCode::kOutOfMemory) return facts;
  }
  return read_snapshot(files, path, check, false);
}

}  // namespace server
