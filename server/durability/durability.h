// SPDX-License-Identifier: MIT
//
// Durability: manages the data directory: loading, the append log and its rewrites, snapshots, and
// the times at which saves are due. It owns the objects that do this work, runs a thread that
// starts due work, and saves all data before the process ends.
//
//   DataLoader, DataReplacer ─► keyspace ─► Saves: SnapshotSaver, BaseRewriter, TransferSaver
//   journal ─► AppendLog, opened and closed by LogSwitch
//
// Invariants: at most one task saves, loads or replaces all data at a time (SaveSlot); only SAVE
// may also run during a rewrite. After any failure the files on disk are still a complete set. I/O
// threads wait for the disk only in SAVE, in writes of the log, and in syncs of `always` that are
// fast (AppendLog).
// Thread safety: only the owner calls set_stream(), prepare(), recover(), start() and finish(). Any
// thread may call the other members. The caller of
// replace_data() must hold neither the stream's mutex nor the lock of a stripe.
// Source: docs/architecture.md, "Durability".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/keyspace/locking.h"
#include "core/result.h"
#include "server/session/replayer.h"

namespace persistence {
class AofWriter;
}

namespace server {

class AppendLog;
class Availability;
class DataLoader;
class LogSwitch;
class Saves;
class StreamPosition;
enum class SaveStart : uint8_t;
// FinalSave: whether a snapshot is written when the process ends.
enum class FinalSave : uint8_t {
  kNone,
  // Save points are configured, so the server writes a snapshot before it ends. If the save fails
  // but the append log holds all data, the server only logs a warning and ends.
  kBySavePoints,
  kRequired,  // SHUTDOWN SAVE requires a snapshot: if the save fails, the server continues
};
struct DurabilityParts;
struct Replacement;

class Durability {
  // The members are declared first, because the references below refer to them.
  struct Members;
  const std::unique_ptr<Members> members_;

 public:
  using Parts = DurabilityParts;
  using Locking = core::keyspace::Locking;

  explicit Durability(const Parts& parts);
  ~Durability();
  Durability(const Durability&) = delete;
  Durability& operator=(const Durability&) = delete;

  Availability& availability;
  AppendLog& append_log;
  Saves& saves;
  DataLoader& loader;
  LogSwitch& log_switch;
  // Returns the loaded fraction of the data, 0 to 1; negative while nothing is loading.
  double loaded_share() const;
  // Sets the stream whose position snapshots record. Must be called before recover(). The stream
  // must outlive this object's threads.
  void set_stream(StreamPosition* stream);

  // Must be called first. Locks the directory, which may wait for the child process of a killed
  // server (see DirectoryLock::take()). From then on clients get LOADING. Registers the hooks for
  // options that change at run time. Errors: another server has locked the directory.
  core::Result<> prepare();
  // Loads the existing data and opens the append log. An error must end the process.
  core::Result<> recover(ReplayerFactory make_replayer);
  // Starts the append log's thread and the thread that calls tick(). Must be called after
  // recover().
  void start();
  // Completes the saves of child processes that have ended. Starts scheduled saves and rewrites,
  // and a snapshot if a save point is reached. Called by the thread of this object.
  void tick();

  // Implements BGREWRITEAOF. The rewrite runs on a separate thread, so failures appear in the log
  // and in INFO. Without an append log, the rewrite writes the base for a later start with an
  // append log.
  core::Result<SaveStart> request_rewrite();
  // Replaces all data by a leader's snapshot.
  core::Result<> replace_data(const Replacement& replacement);

  // Must be called before the process ends, while clients are connected but no writes happen. Kills
  // a child process that saves, but waits for a child process that writes the log's first base.
  // Then flushes the log, and saves if requested. Afterwards no save begins. Errors: the data that
  // could not be saved; the server then continues.
  core::Result<> prepare_end(FinalSave save);
  // Stops the threads, then writes and syncs the last bytes of the append log. Must be called when
  // no other thread uses the log. Errors: the number of bytes that are not on disk, and the cause.
  core::Result<> finish();

  bool log_is_on() const;
  const persistence::AofWriter& log_writer() const;
  uint64_t log_end() const;
  // Returns the bytes of memory that the append log takes.
  uint64_t log_memory_bytes() const;
  // Returns the journal offset up to which the log is on disk. Returns nullopt if there is no log,
  // or if the log cannot restore the data because it has no base.
  std::optional<uint64_t> log_synced_offset() const;
  // Returns whether a start from the log alone restores every change made so far.
  bool log_holds_everything() const;

 private:
  void stop();
};

}  // namespace server
