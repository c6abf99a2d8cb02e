// SPDX-License-Identifier: MIT
//
// check_aof: looks through an append log without loading it, and mends a torn tail when told to.
//
// Invariants: without `fix` no byte is changed; with it only a torn tail is cut off, and only that
// of the last file with commands. Damage is told, never mended.
// Thread safety: none; the server must not be running on the same log.
// Source: docs/formats.md, "Append log".
#pragma once

#include <string>

#include "persistence/files/file_system.h"

namespace persistence {

struct AofCheckReport {
  // Lines for a person, each with its end.
  std::string text;
  bool is_sound = false;
};

// `path` is a manifest or a single file of a log; content tells which.
AofCheckReport check_aof(FileSystem& files, const std::string& path, bool fix);

}  // namespace persistence
