// SPDX-License-Identifier: MIT
//
// The lock file of a data directory. A server locks the file while it runs, and tools that change
// files of a data directory lock it meanwhile.
//
// Thread safety: may be called from any thread.
// Source: docs/persistence.md, "Files".
#pragma once

#include <sys/file.h>

#include <cerrno>
#include <string>

#include "core/result.h"
#include "persistence/files/posix_io.h"

namespace persistence {

inline constexpr const char* kLockFileName = ".bloomery.lock";

// Locks the open file, without waiting, until its descriptor is closed. Returns false if another
// process has locked it. Errors: the file system cannot lock files.
inline core::Result<bool> try_lock(int descriptor, const std::string& path) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return io_failure("lock", path, errno);
}

}  // namespace persistence
