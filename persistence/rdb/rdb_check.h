// SPDX-License-Identifier: MIT
//
// check_rdb: reads a snapshot to its end, keeps nothing, and says what it holds.
//
// Invariants: a file without an error is one that loads, foreign types skipped.
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

// Keys by type, for each database.
using RdbCounts = std::map<uint64_t, std::map<std::string, uint64_t>>;

struct RdbSummary {
  RdbReadResult file;  // of a file with an error: nothing but the defaults
  std::vector<std::pair<std::string, std::string>> aux;
  RdbCounts keys;
  RdbCounts foreign;  // what a server without these types leaves out
  uint64_t keys_with_expiry = 0;
  std::optional<core::Error> error;  // what is told of keys is then what came before it
};

RdbSummary check_rdb(ByteSource& source, const RdbProgressCallback& on_progress = {});

// A few lines for people.
std::string describe(const RdbSummary& summary);

// `bloomery-server --check-rdb FILE`: the text to print, and whether all is well.
struct RdbVerdict {
  std::string text;
  bool is_sound = false;
};
RdbVerdict check_rdb_file(FileSystem& files, const std::string& path);

}  // namespace persistence
