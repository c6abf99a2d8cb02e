// SPDX-License-Identifier: MIT
//
// DirectoryLock: keeps a second server out of a data directory.
//
// Invariants: the lock is released when the process and its forked children have ended, however
// they end. A child closes the lock's descriptor after all sockets. The empty lock file is not
// deleted.
// Thread safety: any thread may call descriptor(). One thread at a time may call the other members.
// Source: flock(2).
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "core/result.h"

namespace server {

class DirectoryLock {
 public:
  DirectoryLock() = default;
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // Locks the working directory. If it is locked, retries for `patience`. The forked child of a
  // killed server may hold the lock and the sockets until the child exits. Errors: the lock
  // file cannot be opened, or the directory is still locked.
  core::Result<> take(std::chrono::milliseconds patience);
  // Changes the working directory, and locks the new one instead. Errors: the reason. After an
  // error the directory and its lock are unchanged.
  core::Result<> move_to(const std::string& directory);
  // Returns the descriptor that holds the lock, -1 before take().
  int descriptor() const { return descriptor_; }

 private:
  std::atomic<int> descriptor_{-1};
};

}  // namespace server
