// SPDX-License-Identifier: MIT
//
// read_aof_times: when the commands of one file of the append log were written, by its `#TS:`
// lines.
//
// Invariants: a place to cut never lies inside of a transaction.
// Thread safety: none; different files may be read side by side.
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"
#include "persistence/aof/aof_reader.h"
#include "persistence/files/file_system.h"

namespace persistence {

struct AofTimes {
  // The first line's unix time; nullopt: the file has none.
  std::optional<uint64_t> first_s;
  // Where the first later line begins, or the MULTI around it.
  std::optional<uint64_t> later_offset;
};

// Reads the sound part up to the first line that is later than `until_s`. REQUIRES: `scan` is that
// of the file and not damaged.
core::Result<AofTimes> read_aof_times(FileSystem& files, const std::string& path,
                                      const AofScan& scan, uint64_t until_s);

}  // namespace persistence
