// SPDX-License-Identifier: MIT
//
// AppendLog: decides when journal bytes are written and synced, and when replies may be sent.
//
// With `appendfsync everysec` and `no`, an I/O thread with pending replies writes the bytes of all
// threads. With `everysec`, the log's own thread syncs once a second. With `always`, one thread at
// a time writes and syncs for all waiting replies. The other threads do not wait for the end of a
// sync: they continue, and are notified.
//
// If syncs take a millisecond or less on average, an I/O thread syncs for its own waiting clients.
// Handing such a sync to another thread would take longer. Otherwise the log's own thread syncs, so
// that no I/O thread waits for the disk. If several clients waited for one sync, the log's thread
// delays the next sync until the same number of clients waits again. The delay is at most twice the
// duration of the last sync, and at most a millisecond. So clients that write in a loop keep
// sharing one sync. Without the delay, fewer and fewer clients would share a sync.
//
// While a sync of `everysec` takes more than two seconds, replies to writes wait for the end of the
// sync. So a power cut loses the writes of a few seconds at most.
//
// Invariants: a reply is sent only when is_safe() holds for the journal's end after its command.
// The reason is that the reply may depend on any earlier write of any client. When writing fails or
// a sync is overdue, replies to read-only commands are still sent, although the data that they show
// may be lost. If writing fails (fails()), clients with pending writes get failure_text(), new
// writes are refused (Availability), and the log's thread retries. With `always` a failure ends the
// process before any affected write is acknowledged.
// Thread safety: any thread may call the members, with these exceptions. One thread at a time may
// call start() and stop(). prepare_rotation() and the functions of files() follow the rules of
// AofWriter and LogFiles.
// Source: docs/architecture.md, "The journal".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/result.h"
#include "server/durability/log/reply_log.h"
#include "server/durability/log/sync_pacing.h"
#include "server/durability/log/sync_record.h"

namespace core {
class Clock;
}
namespace persistence {
class AofWriter;
class FileSystem;
class Journal;
}  // namespace persistence

namespace server {

class Availability;
class Config;
class LogFiles;
class LogListener;

class AppendLog final : public ReplyLog {
 public:
  // `listener` may be null if no reply waits for the log.
  AppendLog(const Config& config, const core::Clock& clock, persistence::Journal& journal,
            persistence::FileSystem& files, Availability& availability,
            LogListener* listener = nullptr);
  ~AppendLog();
  AppendLog(const AppendLog&) = delete;
  AppendLog& operator=(const AppendLog&) = delete;

  void start();
  void stop();

  // Returns the files of the log, which LogSwitch and BaseRewriter open, close and replace.
  LogFiles& files() { return *files_; }
  const persistence::AofWriter& writer() const;

  uint64_t offset_of_replies(bool has_written) const override;
  bool is_safe(uint64_t offset) const override;
  bool fails() const override;
  std::string failure_text() const override;
  // Returns whether the append log is in use, so that replies to writes may have to wait for the
  // log.
  bool is_open() const;
  bool syncs_before_replies() const override { return is_open() && is_always(); }
  // Writes pending bytes, unless appendfsync is `always`: then commit() writes and syncs.
  void write() override;
  // Writes pending bytes. With `always` also syncs them, or lets another thread sync. If clients
  // still wait, their thread calls commit() again after on_log_progress().
  void commit(size_t clients) override;
  // Rejects writes until the log works again. If `appendfsync` is `always`, ends the process
  // instead.
  void report_failure(const std::string& reason);
  // Wakes the log's thread: it writes pending bytes and notifies waiting threads.
  void wake();
  // Writes and syncs all pending bytes on the calling thread. After an error writes are rejected
  // until the log works again, even if `appendfsync` is `always`.
  core::Result<> flush();
  // Does the same, but calls report_failure() after an error.
  core::Result<> flush_or_report();
  // Calls AofWriter::prepare_rotation(), and report_failure() if a sync fails there. No later sync
  // would report that failure.
  core::Result<> prepare_rotation();
  // Called by a replica before it reads more of its leader's stream. Errors: the log fails, a sync
  // is overdue, or too many bytes of the stream are not written to the log. A log that could not be
  // reopened after a full sync also fails.
  core::Result<> takes_more() const;
  // Stops or resumes the syncs of `everysec`. no-appendfsync-on-rewrite stops them while a child
  // process saves.
  void suspend_syncs(bool suspended) { syncs_suspended_ = suspended; }

  // Wakes the threads whose replies wait for the log, so that they check which replies have become
  // safe.
  void notify_progress() const;

  const SyncRecord& syncs() const { return syncs_; }

 private:
  bool is_always() const;
  bool sync_is_overdue() const;
  // Rejects writes until the log works again.
  void refuse_writes(const std::string& cause);
  // Writes and syncs for all waiting replies, unless another thread is doing so. Returns false if
  // the log's thread should write and sync.
  bool sync_here();
  void run();
  void step();
  void write_and_report();
  void sync_and_report();
  core::Result<> write_and_sync();

  const Config& config_;
  const core::Clock& clock_;
  persistence::Journal& journal_;
  const std::unique_ptr<LogFiles> files_;
  Availability& availability_;
  LogListener* const listener_;
  std::atomic<bool> syncs_suspended_{false};
  SyncRecord syncs_;

  std::mutex mutex_;  // this mutex guards wanted_ and stopping_
  std::condition_variable wake_;
  bool wanted_ = false;
  bool stopping_ = false;
  // True while a thread writes and syncs for all threads.
  std::atomic<bool> is_taken_{false};
  SyncPacing pacing_;             // with `always`, decides which thread syncs and when
  int64_t next_sync_us_ = 0;      // time of the next sync; used by the log's thread
  int64_t next_retry_us_ = 0;     // time of the next retry; used by the log's thread
  int64_t next_position_us_ = 0;  // time of the next write_position(); used by the log's thread
  std::thread thread_;
};

}  // namespace server
