// SPDX-License-Identifier: MIT
//
// export_rdb: copies those keys of a snapshot that another server can load, and reports the keys
// that were left out.
//
// The file is read twice. The first pass reads to the end, so that damage is found before anything
// is written. If the caller names no target server, the first pass also counts the filters of each
// module, to choose the target. The second pass copies value by value.
//
// Invariants: memory holds one value at a time. The new file gets its name only when it is complete
// and on the disk; after an error no file of this process is left. A key keeps its expiry. A key
// that has already expired is written, too.
// Thread safety: any thread may call the functions, which share no state. Two exports must not
// write the same file at the same time.
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

// ExportTarget: the kind of server that will load the file, with its module.
enum class ExportTarget : uint8_t { kRedis, kRedisBloom, kValkeyBloom };

// Returns the name of the target: "redis", "redisbloom" or "valkey-bloom".
std::string_view export_target_name(ExportTarget target);
std::optional<ExportTarget> parse_export_target(std::string_view name);

struct ExportRequest {
  std::string source;
  RdbPlace place;
  // The target server. The default is the module whose layout is the most frequent among the
  // filters without a window. If no module can load any filter, the default is Redis.
  std::optional<ExportTarget> target;
  bool may_replace = false;
  std::string server_version;
  int64_t created_at_s = 0;
  // Called with the progress of both passes together, in bytes of the source.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
};

struct LeftOut {
  uint64_t count = 0;
  std::vector<std::string> names;  // names of the first few keys; empty for foreign types
};

struct ExportFigures {
  ExportTarget target = ExportTarget::kRedis;
  uint64_t string_count = 0;
  uint64_t filter_count = 0;
  uint64_t file_bytes = 0;
  uint64_t database_max = 0;  // the highest database that has a key

  // Keys that were left out, by kind: "native filter", "list".
  std::map<std::string, LeftOut> left_out;
  bool replaced = false;
};

inline constexpr size_t kNamesShownMax = 5;

// Exports the snapshot. Errors: a file cannot be read or written, the source is damaged, or a file
// exists at the path and may not be replaced.
core::Result<ExportFigures> export_rdb(FileSystem& files, const ExportRequest& request);

}  // namespace persistence
