// SPDX-License-Identifier: MIT
//
// LogFiles: the set of files of the append log. Opens the log, and replaces its base. Also knows
// whether a start from these files would restore the keyspace.
//
// Invariants: the invariants of AofWriter and AofDirectory hold. While the files contain discarded
// data (are_stale()), no sync makes a write safe.
// Thread safety: any thread may read the counters, and may call write(), write_position() and
// sync() of the writer, are_stale(), set_stale() and needs_new_base(). Only one thread at a time
// may call the functions that change files. That thread holds the mutex of LogSwitch, or has
// claimed the save slot.
// Source: docs/formats.md, "Append log".
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/result.h"
#include "persistence/aof/aof_directory.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "server/base/config/config.h"

namespace server {

class LogFiles {
 public:
  LogFiles(const Config& config, const core::Clock& clock, persistence::Journal& journal,
           persistence::FileSystem& files);

  persistence::AofWriter& writer() { return writer_; }
  const persistence::AofWriter& writer() const { return writer_; }
  persistence::AofDirectory& directory() { return directory_; }

  // Opens the log for appending to the files found at startup. Removes files that a crashed server
  // was writing, and files that the manifest no longer needs.
  core::Result<> open_found(persistence::AofManifest manifest,
                            const std::optional<persistence::AofWriter::Tail>& tail,
                            uint64_t files_bytes, bool needs_base);
  // Begins a log whose base is not written yet. Until the base is written, a start loads the
  // previous data.
  core::Result<> open_without_base(persistence::AofManifest manifest);
  // Returns whether the log needs a new base, because it has no base or a sync of the log has
  // failed.
  bool needs_new_base() const { return writer_.needs_base() || writer_.has_lost_sync(); }
  // Replaces the base. The log need not be open.
  core::Result<> replace_base(const std::string& path, persistence::AofBaseFormat format);

  // Returns whether the files contain data that were discarded from the keyspace, for example by a
  // full sync. A start would load these data.
  bool are_stale() const { return are_stale_; }
  void set_stale(bool are_stale) { are_stale_ = are_stale; }

 private:
  persistence::AofDirectory directory_;
  persistence::AofWriter writer_;
  std::atomic<bool> are_stale_{false};
};

}  // namespace server
