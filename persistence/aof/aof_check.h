// SPDX-License-Identifier: MIT
//
// check_aof: checks an append log without loading it, and truncates a torn tail if requested.
//
// Invariants: without `fix` no byte is changed. With `fix` only a torn tail is cut off, and only
// that of the last file with commands. Damage is reported, never repaired.
// Thread safety: none; the server must not be running on the same log.
// Source: docs/formats.md, "Append log".
#pragma once

#include <string>

#include "persistence/files/file_system.h"

namespace persistence {

struct AofCheckReport {
  // Lines for people, each with its line end.
  std::string text;
  bool is_sound = false;
};

// `path` is a manifest or a single file of a log, which the content shows.
AofCheckReport check_aof(FileSystem& files, const std::string& path, bool fix);

}  // namespace persistence
