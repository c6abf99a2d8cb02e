// SPDX-License-Identifier: MIT
//
// Durability: everything done with the data directory: loading, the append log and its rewrites,
// snapshots, and the schedule of each. It owns those parts, runs a thread that starts due work, and
// brings everything to the disk before the process ends.
//
//   DataLoader, DataReplacer ─► keyspace ─► Saves: SnapshotSaver, BaseRewriter, TransferSaver
//   journal ─► AppendLog, opened and closed by LogSwitch
//
// Invariants: at most one task saves, loads or replaces all data at a time (SaveSlot). After any
// failure the files on the disk are still a complete set. Work that waits for the disk runs on its
// own thread, never on an I/O thread.
// Thread safety: all members may be called from any thread. Those that take Locking must not be
// called by a thread that holds some stripes but not all. Source: docs/architecture.md,
// "Durability".
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
// The snapshot that is written when the process ends.
enum class FinalSave : uint8_t {
  kNone,
  // Because save points are configured: without it the server ends all the same if the append log
  // holds everything.
  kBySavePoints,
  kRequired,  // by SHUTDOWN SAVE
};
struct DurabilityParts;
struct Replacement;

class Durability {
 public:
  using Parts = DurabilityParts;
  using Locking = core::keyspace::Locking;

  explicit Durability(const Parts& parts);
  ~Durability();
  Durability(const Durability&) = delete;
  Durability& operator=(const Durability&) = delete;

  Availability& availability;
  AppendLog& append_log();
  Saves& saves();
  const Saves& saves() const;
  DataLoader& loader();
  const DataLoader& loader() const;
  // Of the data, 0 to 1; negative when none are being loaded.
  double loaded_share() const;
  LogSwitch& log_switch();
  // Snapshots tell it. Set before recover(); must outlive this object's threads.
  void set_stream(StreamPosition* stream);

  // Before anything else: keeps other servers out of the directory, lets clients wait for the data,
  // and follows the options that change at run time. Waits for a killed server's child, see
  // DirectoryLock. Errors: another server has the directory.
  core::Result<> prepare();
  // Loads what is there and opens the log. Errors end the process.
  core::Result<> recover(ReplayerFactory make_replayer);
  // Starts the threads; after recover().
  void start();
  // Handles due work: finished children, scheduled saves, save points, rewrites. Called by its own
  // thread.
  void tick();

  // BGREWRITEAOF starts on its own thread: failures appear in the log and INFO. Without an append
  // log it writes the base that a later start with one would find.
  core::Result<SaveStart> request_rewrite();
  // A leader's snapshot takes the place of all data.
  core::Result<> replace_data(const Replacement& replacement);

  // Before the process ends, while clients are still connected but no writes happen: ends a child,
  // or waits for it if it writes the log's first base, flushes the log, saves if asked. Afterwards
  // no save begins any more. Errors: what could not be saved; then everything goes on.
  core::Result<> prepare_end(FinalSave save);
  // When nothing runs any more: the last bytes of the log.
  core::Result<> finish();

  bool log_is_on() const;
  const persistence::AofWriter& log_writer() const;
  uint64_t log_end() const;
  // Up to which offset of the journal the log is on the disk; nothing without a log, or without its
  // base: then it brings nothing back.
  std::optional<uint64_t> log_synced_offset() const;
  // Whether a start from the log alone finds every change made so far.
  bool log_holds_everything() const;

 private:
  void stop();

  struct Members;

  const std::unique_ptr<Members> members_;
};

}  // namespace server
