// SPDX-License-Identifier: MIT
//
// DirectoryLock: keeps a second server out of a data directory.
//
// Invariants: the lock ends with the process, however it ends; the file stays, empty.
// Thread safety: none.
// Source: flock(2).
#pragma once

#include <string>

#include "core/result.h"

namespace server {

class DirectoryLock {
 public:
  DirectoryLock() = default;
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // Of the working directory. Errors: another server has it.
  core::Result<> take();
  // Makes another directory the working one, and locks that instead. Errors: why not; then nothing
  // has changed.
  core::Result<> move_to(const std::string& directory);

 private:
  int descriptor_ = -1;
};

}  // namespace server
