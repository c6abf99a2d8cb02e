// SPDX-License-Identifier: MIT
//
// AofWriter: writes the journal to the append log's files, and keeps their manifest.
//
//   journal ──write()──► newest incremental file ──sync()──► disk
//
// Invariants: a batch is in the file whole, its checksum line included, or the file is cut back to
// where it was and the batch waits for the next write(). written_offset() ≥ synced_offset(); both
// are offsets of the journal. A new file takes no bytes before the one before it is on the disk, so
// a power cut tears the newest file only. The manifest on the disk always names a set of files that
// holds all that synced_offset() promises. Once a sync has failed nobody knows what the disk holds:
// no later sync is believed until a new base has replaced those files. Thread safety: write(),
// sync() and the figures from any thread; opening, rotating and replacing from one thread at a
// time. Source: docs/formats.md, "Append log"; PostgreSQL's "fsyncgate" (Ringer 2018) for failed
// syncs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "persistence/aof/aof_format.h"
#include "persistence/aof/aof_increment.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"

namespace persistence {

struct AofPlace {
  std::string directory;  // where the files lie
  AofNames names;
};

class AofWriter {
 public:
  AofWriter(FileSystem& files, Journal& journal, const core::Clock& clock, AofPlace place);
  ~AofWriter();
  AofWriter(const AofWriter&) = delete;
  AofWriter& operator=(const AofWriter&) = delete;

  // Where to go on: the newest incremental file as it was read, if it is ours and sound.
  struct Tail {
    uint64_t size_bytes = 0;
    RunningChecksum checksum;
  };
  enum class Begin : uint8_t {
    kNow,       // the files that the manifest names hold all the data
    kWithBase,  // they do not: the manifest stays as it is before replace_base()
    kAfresh,    // they hold other data, given up: besides, no sync is believed before that
  };
  // Opens the log; `files_bytes` is the size of all files read. Without a tail a new incremental
  // file is begun. The journal may then become active.
  core::Result<> open(AofManifest manifest, const std::optional<Tail>& tail, uint64_t files_bytes,
                      Begin begin);
  // Until the first replace_base() after kWithBase and kAfresh.
  bool needs_base() const { return is_open() && needs_base_.load(std::memory_order_relaxed); }
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  // Forgets the files, and what the journal still holds, after a last write and sync by the caller.
  // REQUIRES: the journal is inactive.
  void close();

  // Writes all that the journal holds; one write for all threads that wait for it. After a rotation
  // it waits, without an error, until a sync() has dealt with the file before.
  core::Result<> write();
  // Waits until all that had been written before the call is on the disk.
  core::Result<> sync();
  uint64_t written_offset() const { return written_.load(std::memory_order_acquire); }
  uint64_t synced_offset() const { return synced_.load(std::memory_order_acquire); }
  bool awaits_sync() const { return awaits_sync_.load(std::memory_order_acquire); }
  // True from a failed sync on, until replace_base() has succeeded.
  bool has_lost_sync() const { return has_lost_sync_.load(std::memory_order_acquire); }
  // `aof-timestamp-enabled`
  void set_timestamps(bool enabled) { has_timestamps_.store(enabled, std::memory_order_relaxed); }

  // A rewrite: prepare_rotation(), then under all stripe locks rotate() and the fork, then
  // replace_base() with what the child has written. After a failure the log goes on as it is.
  core::Result<> prepare_rotation();
  core::Result<> rotate();
  core::Result<> replace_base(const std::string& new_base_path, AofBaseFormat format);

  uint64_t size_bytes() const;       // of all files that a start would read
  uint64_t base_size_bytes() const;  // what that was after the last rewrite, or at the start
  uint64_t buffered_bytes() const;   // taken from the journal and not written, because that failed

 private:
  std::string path_of(const std::string& name) const { return place_.directory + "/" + name; }
  core::Result<std::unique_ptr<AppendFile>> sync_files();
  // REQUIRES: mutex_.
  core::Result<> write_locked();
  void take_journal();
  void append_timestamp();
  void remove_history();

  FileSystem& files_;
  Journal& journal_;
  const core::Clock& clock_;
  const AofPlace place_;
  AofManifest manifest_;
  std::optional<AofIncrement> next_;  // prepared by prepare_rotation()

  std::atomic<bool> is_open_{false};
  std::atomic<bool> needs_base_{false};
  std::atomic<bool> has_timestamps_{false};
  std::atomic<bool> has_lost_sync_{false};
  std::atomic<bool> awaits_sync_{false};  // older_ is set
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> synced_{0};

  std::mutex sync_mutex_;  // one sync at a time; taken before mutex_

  mutable std::mutex mutex_;  // guards what follows
  AofIncrement current_;
  std::shared_ptr<AppendFile> older_;  // written before current_ and not yet synced, or null
  std::shared_ptr<AppendFile> lost_;   // whose sync has failed
  std::string batch_;                  // taken from the journal
  uint64_t batch_end_ = 0;             // the journal's offset behind it
  size_t covered_bytes_ = 0;           // of the batch: those that the next base holds
  int64_t timestamp_s_ = 0;
  uint64_t older_bytes_ = 0;  // of the files before current_
  uint64_t base_size_bytes_ = 0;
};

}  // namespace persistence
