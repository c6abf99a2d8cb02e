// SPDX-License-Identifier: MIT
//
// Durability: what the data directory is used for: recovery, the append log and its rewrites,
// snapshots, and when each happens.
//
// Invariants: at most one child saves at a time. A rewrite switches the log to a new file and forks
// while no command runs, so that the child's snapshot and the new file meet exactly. Whatever
// fails, the files on the disk stay a complete set.
// Its own thread does what waits for the disk, so that no I/O thread does.
// Thread safety: all members may be called from any thread. Those that take Locking must not be
// called by a thread that holds some stripes but not all. Source: docs/architecture.md,
// "Durability".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "persistence/aof/aof_directory.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/config/config.h"
#include "server/durability/append_log.h"
#include "server/durability/recovery.h"
#include "server/durability/save_child.h"
#include "server/durability/save_progress.h"
#include "server/durability/stream_position.h"
#include "server/process/command_drain.h"
#include "server/process/memory_monitor.h"
#include "server/process/server_state.h"

namespace server {

// What INFO shows of one kind of save.
struct SaveRecord {
  int64_t last_time_s = -1;  // how long the last one took
  uint64_t last_copied_bytes = 0;
  uint64_t count = 0;  // that have succeeded
  uint64_t failures_in_a_row = 0;
  bool last_was_ok = true;
};

// A snapshot that goes to replicas instead of `dump.rdb`.
struct SnapshotTransfer {
  // Nothing that is added after the fork may be in it (durability_transfer.cpp).
  bool is_exact = false;
  // Called while nothing moves, with the place that the snapshot will have in the stream. Returns
  // the descriptors that the child needs. Errors: nobody is left to send to.
  std::function<core::Result<std::vector<int>>(const persistence::RdbReplicationInfo&)> prepare;
  // Writes it; runs in the child.
  std::function<core::Result<>(const persistence::RdbWriteOptions&)> write;
  // Called once after prepare(), with what went wrong; when no other task runs any more.
  std::function<void(const core::Result<>&)> finished;
};

// What everything works on that keeps the data set or copies it elsewhere.
struct DataParts {
  Config& config;
  const core::Clock& clock;
  core::keyspace::Keyspace& keyspace;
  persistence::Journal& journal;
  persistence::FileSystem& files;
  ServerState& state;
};

class Durability {
 public:
  struct Parts : DataParts {
    SaveChild::Starter start_child = SaveChild::start;
    // Memory that the machine has left.
    std::function<uint64_t()> free_bytes = free_machine_bytes;
    // Without it no command runs beside this.
    CommandDrain* commands = nullptr;
  };
  enum class Task : uint8_t { kNone, kSave, kRewrite, kTransfer };
  enum class Start : uint8_t { kStarted, kScheduled };
  using Locking = core::keyspace::Locking;

  explicit Durability(const Parts& parts);
  ~Durability();
  Durability(const Durability&) = delete;
  Durability& operator=(const Durability&) = delete;

  Availability& availability;
  // Snapshots tell it. Set before recover(); must outlive this object's threads.
  void set_stream(StreamPosition* stream) { stream_ = stream; }
  AppendLog& append_log() { return append_log_; }

  // Loads what is there and opens the log. Errors end the process.
  core::Result<> recover(ReplayerFactory make_replayer);
  // Where in the replication stream the snapshot that recover() loaded stands, if it says so.
  const std::optional<persistence::RdbReplicationInfo>& recovered_position() const {
    return recovered_position_;
  }
  // Makes recover() end soon, with an error.
  void cancel_recovery() { recovery_is_cancelled_ = true; }
  // Starts the threads; after recover().
  void start();

  // What is due: finished children, scheduled work, save points, rewrites. The own thread calls it.
  void tick();

  // BGSAVE, SAVE. BGREWRITEAOF is begun by the own thread: what fails then is in the log and INFO.
  // Without an append log it writes the base that a later start with one would find.
  core::Result<Start> start_save(Locking locking, bool may_wait);
  core::Result<Start> request_rewrite();
  core::Result<> save(Locking locking);
  // Forks a child that sends a snapshot. Errors: another child saves, no stream, or the fork; then
  // finished() is not called, unless prepare() was.
  core::Result<> start_transfer(SnapshotTransfer transfer);
  // DEBUG RELOAD and LOADAOF: forgets all keys and loads them from the files. From begin_reload()
  // on clients are told LOADING; the caller drains what they had begun before it goes on.
  // end_reload() calls `on_loaded` before another one may begin.
  core::Result<> begin_reload();
  core::Result<> reload_snapshot(bool saves);
  core::Result<> reload_log();
  void end_reload(const std::function<void()>& on_loaded);
  // A leader's snapshot, received and checked: all keys go for those of the file, which becomes the
  // server's own; the append log begins anew. Clients are told LOADING meanwhile. Errors: the data
  // stays as it was; or, when on_lost was called, there is none.
  struct Replacement {
    std::string path;
    // All under the stream's mutex. False: the snapshot is not wanted any more.
    std::function<bool()> may_begin = [] { return true; };
    std::function<void()> on_piece = [] {};
    std::function<void()> on_loaded = [] {};
    std::function<void()> on_lost = [] {};
  };
  core::Result<> replace_data(const Replacement& replacement);
  // CONFIG SET appendonly: carried out by the next tick.
  void want_append_log(bool on) { wants_log_ = on; }
  // Has the own thread carry it out at once, and waits for that, a second at most. Errors: why the
  // log could not be switched on; it is tried again. REQUIRES: this thread holds no stripe.
  core::Result<> await_log_switch();
  // CONFIG SET dir: calls `change` while nothing uses the files. Errors: the append log or a save
  // does, or those of `change`.
  core::Result<> change_directory(const std::function<core::Result<>()>& change);

  void set_timestamps(bool enabled) { writer_.set_timestamps(enabled); }

  // From the order to end on, until it is taken back: no child begins.
  void refuse_children(bool refused) { refuses_children_ = refused; }
  // Before the process ends, while clients are still connected but no writes happen: ends a child,
  // or waits for it if it writes the log's first base, flushes the log, saves if asked. Afterwards
  // no save begins any more. Errors: what could not be saved; then everything goes on.
  core::Result<> prepare_end(bool saves);
  // When nothing runs any more: the last bytes of the log.
  core::Result<> finish();

  // For INFO.
  Task running_task() const { return task_; }
  bool rewrite_is_scheduled() const { return rewrite_is_scheduled_; }
  bool log_is_on() const { return writer_.is_open(); }
  const persistence::AofWriter& log_writer() const { return writer_; }
  uint64_t log_end() const { return parts_.journal.end_offset(); }
  const LoadFigures& load_figures() const { return load_figures_; }
  SaveRecord snapshot_record() const;
  SaveRecord rewrite_record() const;
  int64_t last_save_s() const { return last_save_s_; }
  uint64_t changes_since_save() const { return parts_.state.changes - changes_at_save_; }
  int64_t last_fork_us() const { return last_fork_us_; }
  uint64_t fork_count() const { return fork_count_; }
  SaveProgress progress() const;

 private:
  RecoveryParts recovery_parts();
  void stop();
  void run();
  // REQUIRES: mutex_, and a child.
  SaveProgress progress_of_child() const;
  bool claim(Task task);
  void release();
  persistence::RdbWriteOptions write_options(bool is_aof_base) const;
  persistence::AofBaseFormat wanted_base_format() const;
  core::Result<persistence::RdbProgress> write_base(
      persistence::AofBaseFormat format, const std::string& path,
      const persistence::RdbWriteOptions& options) const;
  std::string snapshot_path() const { return parts_.config.text(OptionId::kDbFileName); }
  // REQUIRES for both: the task is claimed.
  void begin_rewrite();
  core::Result<> save_claimed(Locking locking);
  // REQUIRES: the stream is held.
  core::Result<> save_here(Locking locking);
  core::Result<> fork_child(Task task, Locking locking);
  // Taken before the stripes. Nothing without a stream.
  [[nodiscard]] std::unique_lock<OrderedMutex> hold_stream(Locking locking) const;
  // Whether the machine has the memory that an exact child copies.
  bool exact_child_fits() const;
  // Begins a child; with is_exact it returns when the child shares no array any more.
  // REQUIRES: all stripes. Errors: the fork failed.
  core::Result<std::unique_ptr<SaveChild>> begin_child(const SaveChild::Work& work,
                                                       std::vector<int> kept, bool is_exact);
  std::optional<persistence::RdbReplicationInfo> position() const {
    return stream_ == nullptr ? std::nullopt : stream_->position();
  }
  // Takes in a child that was forked at this moment.
  void adopt_child(std::unique_ptr<SaveChild> child, std::string_view purpose);
  void poll_child();
  // A child that this server has stopped tells nothing of the disk: that is no failure.
  void finish_save(const core::Result<>& result, bool was_stopped);
  void finish_rewrite(core::Result<> result, bool was_stopped);
  void record(SaveRecord& record, bool is_ok);
  void start_what_is_due();
  bool save_is_due() const;
  bool rewrite_is_due() const;
  void follow_log_switch();
  std::optional<core::Result<>> try_log_switch(bool is_awaited);
  bool log_may_begin();
  void close_log();
  core::Result<> begin_log();
  core::Result<> open_log();
  void begin_log_afresh(bool is_loaded);
  // Claims Task::kSave from a child, which is stopped unless `spares` it. False: the server ends.
  bool claim_from_child(const std::function<bool()>& spares);
  core::Result<> complete_log();
  core::Result<> rewrite_here();
  core::Result<> replace_claimed(const Replacement& replacement);
  void lose_data(const core::Error& reason);
  bool await_commands(const std::function<void()>& on_piece);
  core::Result<> reload(const std::function<core::Result<>()>& load);
  core::Result<> write_first_base();

  const Parts parts_;
  StreamPosition* stream_ = nullptr;
  std::optional<persistence::RdbReplicationInfo> recovered_position_;
  persistence::AofDirectory log_directory_;
  persistence::AofWriter writer_;
  AppendLog append_log_;
  LoadFigures load_figures_;
  ReplayerFactory make_replayer_;
  std::atomic<bool> recovery_is_cancelled_{false};

  std::atomic<Task> task_{Task::kNone};
  std::atomic<bool> save_is_scheduled_{false};
  std::atomic<bool> rewrite_is_scheduled_{false};
  std::atomic<bool> rewrite_is_requested_{false};  // and its task claimed
  std::atomic<bool> refuses_children_{false};
  std::atomic<bool> wants_log_{false};
  // The log's files hold data that has been given up, and are what a start would find.
  std::atomic<bool> files_are_stale_{false};
  std::atomic<int64_t> last_save_s_{0};
  std::atomic<uint64_t> changes_at_save_{0};
  std::atomic<int64_t> last_fork_us_{0};
  std::atomic<uint64_t> fork_count_{0};

  OrderedMutex log_switch_mutex_{LockRank::kLogSwitch};  // one thread opens or closes the log
  OrderedMutex poll_mutex_{LockRank::kChildEnd};         // one thread deals with an ended child
  mutable OrderedMutex mutex_{LockRank::kSaves};         // guards what follows
  std::unique_ptr<SaveChild> child_;
  SnapshotTransfer transfer_;
  uint64_t keys_at_fork_ = 0;
  uint64_t bytes_at_fork_ = 0;
  uint64_t changes_at_fork_ = 0;
  SaveRecord snapshot_record_;
  SaveRecord rewrite_record_;

  std::mutex wake_mutex_;  // guards what follows
  std::condition_variable wake_;
  bool is_stopping_ = false;
  uint64_t switch_requests_ = 0;  // numbers of await_log_switch()'s calls
  uint64_t switch_answered_ = 0;  // the last one that is done with
  std::optional<core::Error> switch_error_;
  std::condition_variable switched_;
  std::thread thread_;

  // Of the own thread.
  persistence::AofBaseFormat base_format_ = persistence::AofBaseFormat::kRdb;  // of child_
  bool rewrites_closed_log_ = false;                                           // child_ does
  int64_t next_save_us_ = 0;
  int64_t next_rewrite_us_ = 0;
  int64_t next_report_us_ = 0;
};

}  // namespace server
