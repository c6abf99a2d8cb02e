// SPDX-License-Identifier: MIT
//
// Returns names of temporary files. Complete snapshots and bases are renamed. The file for replicas
// is sent, then removed.
//
// Thread-safe: the functions keep no state. The names contain the process id, so they must be
// determined before a fork.
#pragma once

#include <unistd.h>

#include <string>

#include "persistence/aof/aof_format.h"
#include "persistence/rdb/rdb_writer.h"

namespace server {

inline std::string temporary_snapshot() {
  return persistence::temporary_snapshot_name(::getpid());
}

// Returns the name of a snapshot that is written for replicas. The number in the name is at least
// 2^22, so it cannot be a process id.
inline std::string temporary_transfer() {
  return persistence::temporary_snapshot_name((int64_t{1} << 22) + ::getpid());
}

inline std::string temporary_base() {
  return persistence::aof_finished_rewrite_name(::getpid());
}

}  // namespace server
