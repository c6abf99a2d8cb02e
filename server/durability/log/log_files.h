// SPDX-License-Identifier: MIT
//
// LogFiles: the append log on the disk: its set of files, a new file for a rewrite, a new base, and
// whether a start from these files would bring the keyspace back.
//
// Invariants: those of AofWriter and AofDirectory. Files of discarded data are replaced before a
// sync counts.
// Thread safety: the figures, write() and sync() of the writer from any thread; the rest from one
// thread at a time: with all stripes locked, or by the one that has the task of saving.
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
#include "server/config/config.h"

namespace server {

class LogFiles {
 public:
  LogFiles(const Config& config, const core::Clock& clock, persistence::Journal& journal,
           persistence::FileSystem& files);

  persistence::AofWriter& writer() { return writer_; }
  const persistence::AofWriter& writer() const { return writer_; }
  persistence::AofDirectory& directory() { return directory_; }

  // Continues the files that a start has found, and removes stray ones.
  core::Result<> open_found(persistence::AofManifest manifest,
                            const std::optional<persistence::AofWriter::Tail>& tail,
                            uint64_t files_bytes, bool needs_base);
  // Begins a log whose base is still to be written; a start finds what it found before until then.
  core::Result<> open_without_base(persistence::AofManifest manifest);
  // Only a new base makes a log whole that lacks one, or whose sync has failed.
  bool needs_new_base() const { return writer_.needs_base() || writer_.has_lost_sync(); }
  // Also of a log that is not open.
  core::Result<> replace_base(const std::string& path, persistence::AofBaseFormat format);

  // The files still hold discarded data, which a start would load.
  bool are_stale() const { return are_stale_; }
  void set_stale(bool are_stale) { are_stale_ = are_stale; }

 private:
  persistence::AofDirectory directory_;
  persistence::AofWriter writer_;
  std::atomic<bool> are_stale_{false};
};

}  // namespace server
