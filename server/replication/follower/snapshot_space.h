// SPDX-License-Identifier: MIT
//
// SnapshotSpace: whether a leader's snapshot may go on filling the disk, and how far it is. A
// leader that announces more than fits, or never comes to an end, is stopped while there is room
// left for the append log.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/result.h"
#include "persistence/files/file_system.h"

namespace server {

class WorkReport;

class SnapshotSpace {
 public:
  SnapshotSpace(persistence::FileSystem& files, std::string directory);
  ~SnapshotSpace();
  SnapshotSpace(const SnapshotSpace&) = delete;
  SnapshotSpace& operator=(const SnapshotSpace&) = delete;

  // `announced_bytes` is negative when the snapshot ends in a mark. Asks the file system at the
  // first call and once in kStepBytes. Errors: the rest does not fit, or may not.
  // Tells the log and the terminal how far it is.
  core::Result<> check(uint64_t received_bytes, int64_t announced_bytes);

  static constexpr uint64_t kStepBytes = uint64_t{1} << 20;

 private:
  persistence::FileSystem& files_;
  const std::string directory_;
  uint64_t next_bytes_ = 0;
  const std::unique_ptr<WorkReport> report_;
};

}  // namespace server
