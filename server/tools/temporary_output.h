// SPDX-License-Identifier: MIT
//
// Returns names of temporary files for tools that write beside other files.
//
// No server uses such a name, nor removes the file when it starts. The names are random, because
// process ids are not unique among containers that share a directory.
// Thread safety: the function may be called from any thread.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string>

#include "persistence/files/file_system.h"

namespace server {

inline uint64_t random_file_number() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// Returns a name in the directory of the file `path`. `kind` distinguishes the files of one tool.
inline std::string temporary_output(const std::string& path, uint64_t number,
                                    std::string_view kind) {
  return fmt::format("{}/bloomery-{:016x}.{}.tmp", persistence::directory_of(path), number, kind);
}

}  // namespace server
