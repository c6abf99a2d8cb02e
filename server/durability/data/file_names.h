// SPDX-License-Identifier: MIT
//
// Names of the files that this process writes before they are put in place.
//
// Thread safety: pure functions. A forked child has other names: ask before the fork.
#pragma once

#include <unistd.h>

#include <string>

#include "persistence/aof/aof_format.h"
#include "persistence/rdb/rdb_writer.h"

namespace server {

inline std::string temporary_snapshot() {
  return persistence::temporary_snapshot_name(::getpid());
}

// A name that no process has as its own: ids end below 2^22.
inline std::string temporary_transfer() {
  return persistence::temporary_snapshot_name((int64_t{1} << 22) + ::getpid());
}

inline std::string temporary_base() {
  return persistence::aof_finished_rewrite_name(::getpid());
}

// The snapshot received from a leader.
inline std::string received_snapshot() {
  return persistence::received_snapshot_name(::getpid());
}

}  // namespace server
