// SPDX-License-Identifier: MIT
//
// check_aof: looks through an append log without loading it, and mends a torn tail when told to.
//
// Invariants: without `fix` no byte is changed; with it only the torn tail of the last file is cut
// off. Damage is told, never mended.
// Thread safety: none; the server must not be running on the same log.
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/result.h"
#include "persistence/file_system.h"

namespace persistence {

struct AofCheckOptions {
  bool fix = false;
  // Reads the snapshot that a file begins with, and says how many bytes it has. Errors: what is
  // wrong with it.
  std::function<core::Result<uint64_t>(const std::string& path)> check_snapshot;
};

struct AofCheckReport {
  // Lines for a person, each with its end.
  std::string text;
  bool is_sound = false;
};

// `path` is a manifest or a single file of a log; content tells which.
AofCheckReport check_aof(FileSystem& files, const std::string& path,
                         const AofCheckOptions& options);

}  // namespace persistence
