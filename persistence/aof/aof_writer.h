// SPDX-License-Identifier: MIT
//
// AofWriter: writes the journal to the append log's files, and maintains their manifest.
//
//   journal ──write()──► newest incremental file ──sync()──► disk
//
// Invariants: a batch is written with its checksum line or not at all. After an error the file is
// truncated, and the batch waits for the next write(). written_offset() ≥ synced_offset(); both are
// offsets of the journal. A new file receives no commands before the previous file is on the disk,
// so a power cut tears the newest file only. The manifest on the disk always names files that
// contain everything up to synced_offset(). After a failed sync the state of the disk is unknown,
// so no later sync counts until a new base has replaced those files.
// Thread safety: any thread may call write(), write_position(), sync(), lines() and the const
// members. One thread at a time may call the members that open, rotate or replace files.
// Source: docs/formats.md, "Append log"; PostgreSQL's "fsyncgate" (Ringer 2018) for failed syncs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "core/clock.h"
#include "core/memory/allocation_size.h"
#include "core/result.h"
#include "persistence/aof/aof_format.h"
#include "persistence/aof/aof_increment.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"

namespace persistence {

class BatchLines;

class AofWriter {
 public:
  AofWriter(FileSystem& files, Journal& journal, const core::Clock& clock, AofPlace place);
  ~AofWriter();
  AofWriter(const AofWriter&) = delete;
  AofWriter& operator=(const AofWriter&) = delete;

  // The size and checksum of the newest incremental file. The log continues at the end of that
  // file. Used only if Bloomery wrote the file and the file is valid.
  struct Tail {
    uint64_t size_bytes = 0;
    RunningChecksum checksum;
  };
  enum class Begin : uint8_t {
    kNow,       // the files in the manifest contain all data
    kWithBase,  // some data are in no file; the manifest changes only when replace_base() adds them
    kAfresh,    // like kWithBase, but the files also contain data that the keyspace has discarded,
                // so has_lost_sync() returns true until replace_base()
  };
  // Opens the log. `files_bytes` is the total size of the files that were read at the start. If
  // `tail` is nullopt, a new incremental file is created. The journal may be activated afterwards.
  core::Result<> open(AofManifest manifest, const std::optional<Tail>& tail, uint64_t files_bytes,
                      Begin begin);
  // Returns true after the log was opened with kWithBase or kAfresh, until the first
  // replace_base().
  bool needs_base() const { return is_open() && needs_base_.load(std::memory_order_relaxed); }
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  // Closes the files and discards the bytes that the journal still holds. To keep these bytes, call
  // write() and sync() first. REQUIRES: the journal is inactive.
  void close();

  // Writes everything that the journal holds, in one write for all waiting threads. After a
  // rotation it does nothing and returns no error, until sync() has synced the previous file.
  core::Result<> write();
  // Writes the line that states the data's position in the replication stream, if the position has
  // changed since the last such line. Does nothing while commands wait to be written.
  core::Result<> write_position();
  // Waits until everything that was written before the call is on the disk.
  core::Result<> sync();
  uint64_t written_offset() const { return written_.load(std::memory_order_acquire); }
  uint64_t synced_offset() const { return synced_.load(std::memory_order_acquire); }
  bool awaits_sync() const { return awaits_sync_.load(std::memory_order_acquire); }
  // Returns true if the log's files cannot be trusted: a sync has failed, or the log was opened
  // with kAfresh. Returns false after replace_base() has replaced these files.
  bool has_lost_sync() const { return has_lost_sync_.load(std::memory_order_acquire); }
  BatchLines& lines() { return *lines_; }

  // A rewrite consists of prepare_rotation(), then rotate() and the fork under all stripe locks,
  // then replace_base() with the file that the child process has written. After a failure the log
  // continues unchanged. But if a sync is lost, no file receives commands between rotate() and
  // replace_base(). Errors of prepare_rotation(): the log is closed, or the disk fails.
  core::Result<> prepare_rotation();
  core::Result<> rotate();
  core::Result<> replace_base(const std::string& new_base_path, AofBaseFormat format);

  // Returns the size of all files that a start would read.
  uint64_t size_bytes() const;
  // Returns the value that size_bytes() had after the last rewrite, or when the log was opened.
  uint64_t base_size_bytes() const;
  // Returns the number of bytes that could not be written to the log yet because of an error.
  uint64_t buffered_bytes() const;
  // Returns the memory of all commands that are not written yet, including the journal's. Never
  // waits for the disk.
  uint64_t memory_bytes() const {
    return journal_.memory_bytes() + batch_memory_bytes_.load(std::memory_order_relaxed);
  }

 private:
  core::Result<std::unique_ptr<AppendFile>> sync_files();
  // Writes the pending bytes. REQUIRES: the caller holds mutex_.
  core::Result<> write_locked();
  void take_journal();
  void publish_batch_memory() {
    batch_memory_bytes_.store(core::text_bytes(batch_), std::memory_order_relaxed);
  }
  void remove_history();

  FileSystem& files_;
  Journal& journal_;
  const AofPlace place_;
  AofManifest manifest_;
  std::optional<AofIncrement> next_;  // the next file, which prepare_rotation() has created

  std::atomic<bool> is_open_{false};
  std::atomic<bool> needs_base_{false};
  std::atomic<bool> has_lost_sync_{false};
  std::atomic<bool> awaits_sync_{false};  // true while a file before current_ is not synced
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> synced_{0};
  std::atomic<uint64_t> batch_memory_bytes_{0};  // memory of batch_, or more

  std::mutex sync_mutex_;  // this mutex serializes syncs; locked before mutex_

  mutable std::mutex mutex_;  // this mutex guards lines_ and all members after it
  const std::unique_ptr<BatchLines> lines_;
  AofIncrement current_;
  // File before current_ that is not synced yet; null if there is none.
  std::shared_ptr<AppendFile> older_;
  std::shared_ptr<AppendFile> lost_;  // file whose sync has failed; null if there is none
  std::string batch_;                 // commands taken from the journal and not written yet
  uint64_t batch_end_ = 0;            // journal offset of the end of the batch
  size_t covered_bytes_ = 0;          // size of the prefix of batch_ that is also in the next base
  uint64_t older_bytes_ = 0;          // total size of the log's files before current_
  uint64_t base_size_bytes_ = 0;
};

}  // namespace persistence
