// SPDX-License-Identifier: MIT
//
// check_aof: checks an append log without loading it, and cuts off its end if requested.
//
// Invariants: without a repair no byte is changed. `cuts_torn_end` cuts off nothing but a torn tail
// of the last file that contains commands. `keeps_until_s` changes only a log that is valid except
// for such a tail. Damage is reported, never repaired.
// Thread safety: one thread at a time may check a log, and no server may be using it.
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "persistence/files/file_system.h"

namespace persistence {

struct AofCheckReport {
  // The report as lines of text, each with its line end.
  std::string text;
  bool is_sound = false;
  // True if `keeps_until_s` was given and a sound log could not be cut there.
  bool has_cut_failed = false;
};

struct AofRepair {
  bool cuts_torn_end = false;
  // Unix time in seconds. All commands that were written after this second, and a torn tail, are
  // cut off. The times of commands are those of the `#TS:` lines. The log must have a `#TS:` line
  // of this second or of an earlier one.
  std::optional<uint64_t> keeps_until_s;
};

// Checks the log. `path` is a manifest or a single file of a log; its name or its content shows
// which.
AofCheckReport check_aof(FileSystem& files, const std::string& path, const AofRepair& repair = {});

}  // namespace persistence
