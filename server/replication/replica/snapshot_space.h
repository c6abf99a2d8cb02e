// SPDX-License-Identifier: MIT
//
// SnapshotSpace: checks the disk space for a leader's snapshot, and reports progress. A snapshot
// that does not fit, or has no end, is stopped while there is space left for the append log.
//
// Thread safety: one thread at a time may use an object.
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

  // Checks that the bytes of the snapshot that are still missing fit on the disk. `announced_bytes`
  // is the snapshot's size; negative if the snapshot ends with a mark. Queries the file system at
  // the first call and once every kStepBytes. Errors: the missing bytes do not fit, or would leave
  // too little space. Reports progress to the log and the terminal.
  core::Result<> check(uint64_t received_bytes, int64_t announced_bytes);

  static constexpr uint64_t kStepBytes = uint64_t{1} << 20;

 private:
  persistence::FileSystem& files_;
  const std::string directory_;
  uint64_t next_bytes_ = 0;
  const std::unique_ptr<WorkReport> report_;
};

}  // namespace server
