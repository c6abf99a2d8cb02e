// SPDX-License-Identifier: MIT
//
// DirectoryLock: keeps a second server out of a data directory.
//
// Invariants: the lock ends with the process and its forked children, however they end; a child
// closes it after all sockets. The file stays, empty.
// Thread safety: descriptor() from any thread, the others from one.
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

  // Locks the working directory. Retries a lock that is taken for `patience`: a killed server may
  // leave a child, which holds the lock and the sockets until it runs.
  // Errors: another server has the lock.
  core::Result<> take(std::chrono::milliseconds patience);
  // Makes another directory the working one, and locks that instead. Errors: why not; then nothing
  // has changed.
  core::Result<> move_to(const std::string& directory);
  // Returns the descriptor that holds the lock, -1 before take().
  int descriptor() const { return descriptor_; }

 private:
  std::atomic<int> descriptor_{-1};
};

}  // namespace server
