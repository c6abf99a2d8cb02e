// SPDX-License-Identifier: MIT
//
// read_aof_times: reads the times at which the commands of one append log file were written, from
// its `#TS:` lines.
//
// Invariants: an offset at which the file may be cut is never inside a transaction.
// Thread safety: none; different files may be read in parallel.
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
  // The Unix time of the first `#TS:` line; nullopt if the file has none.
  std::optional<uint64_t> first_s;
  // The offset of the first `#TS:` line later than the requested time, or of the MULTI of the
  // transaction that contains the line.
  std::optional<uint64_t> later_offset;
};

// Reads the valid prefix up to the first `#TS:` line that is later than `until_s`. REQUIRES: the
// file is not damaged, and `scan` is the result of scanning this file.
core::Result<AofTimes> read_aof_times(FileSystem& files, const std::string& path,
                                      const AofScan& scan, uint64_t until_s);

}  // namespace persistence
