// SPDX-License-Identifier: MIT
//
// check_rdb: reads a snapshot to its end, keeps nothing, and reports its content.
//
// Invariants: a snapshot that passes the check can be loaded with the option `rdb-foreign-types
// skip`, if the option `databases` covers its databases and memory suffices.
// Thread safety: pure functions.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_reader.h"

namespace persistence {

// The numbers of keys of each type, for each database.
using RdbCounts = std::map<uint64_t, std::map<std::string, uint64_t>>;

struct RdbSummary {
  RdbReadResult file;  // results of read_rdb(); after an error they have their defaults
  std::vector<std::pair<std::string, std::string>> aux;
  RdbCounts keys;
  RdbCounts foreign;  // numbers of keys of types that this server does not support
  uint64_t keys_with_expiry = 0;
  // The error, if any. After an error, the counts cover only the part of the file before the error.
  std::optional<core::Error> error;
};

RdbSummary check_rdb(ByteSource& source, const RdbProgressCallback& on_progress = {});

// Describes a summary in a few lines of text for the user.
std::string describe(const RdbSummary& summary);

// The result of `bloomery-server --check-rdb FILE`: the text to print, and whether the file is
// sound.
struct RdbVerdict {
  std::string text;
  bool is_sound = false;
};
RdbVerdict check_rdb_file(FileSystem& files, const std::string& path);

}  // namespace persistence
