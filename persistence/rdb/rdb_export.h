// SPDX-License-Identifier: MIT
//
// export_rdb: copies from a snapshot what another server can load, and tells what it left out.
//
// The file is read twice: first to its end, so that damage is found before anything is written and
// the target can be chosen by what the file holds, then value by value into the new file.
//
// Invariants: memory holds one value at a time. The new file has its name only when it is whole and
// on the disk; after an error none of ours is left. Expiries are kept, also those that have passed.
// Thread safety: a free function.
// Source: docs/moving_out.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_writer.h"

namespace persistence {

// Which server is to load the file, and with which module.
enum class ExportTarget : uint8_t { kRedis, kRedisBloom, kValkeyBloom };

// "redis", "redisbloom", "valkey-bloom".
std::string_view export_target_name(ExportTarget target);
std::optional<ExportTarget> parse_export_target(std::string_view name);

struct ExportRequest {
  std::string source;
  RdbPlace place;
  // Without one: the module that the most filters belong to, or Redis if there are none.
  std::optional<ExportTarget> target;
  bool may_replace = false;
  std::string server_version;
  int64_t created_at_s = 0;
  // Of both passes together; bytes are those of the source.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
};

struct LeftOut {
  uint64_t count = 0;
  std::vector<std::string> names;  // the first few; of foreign types none
};

struct ExportFigures {
  ExportTarget target = ExportTarget::kRedis;
  uint64_t string_count = 0;
  uint64_t filter_count = 0;
  uint64_t file_bytes = 0;
  uint64_t database_max = 0;                // the highest that has a key
  std::map<std::string, LeftOut> left_out;  // by kind: "native filter", "list"
  bool replaced = false;
};

inline constexpr size_t kNamesShownMax = 5;

// Errors: of the files, of damage in the source, and a file at the place that may not be replaced.
core::Result<ExportFigures> export_rdb(FileSystem& files, const ExportRequest& request);

}  // namespace persistence
