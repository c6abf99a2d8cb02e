// SPDX-License-Identifier: MIT
#include "server/durability/log/append_log.h"

#include <sys/prctl.h>

#include <chrono>

#include "core/clock.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/availability.h"
#include "server/base/process/start_thread.h"
#include "server/durability/log/log_files.h"
#include "server/durability/log/log_listener.h"

namespace server {
namespace {

// Interval at which the log's thread checks whether the next sync is due.
constexpr std::chrono::microseconds kTick{100'000};
// While more bytes than this wait to be written to a replica's append log, the replica does not
// read its leader's stream. The buffer for the waiting bytes may be twice as large.
constexpr uint64_t kBytesBehindMax = uint64_t{32} << 20;
// Timer slack of the log's thread. The default of 50 µs is as long as a sync of a fast disk.
constexpr unsigned long kTimerSlackNs = 1000;

// Returns the listener if it wants LATENCY events, otherwise null.
LogListener* event_listener(const Config& config, LogListener* listener) {
  return config.integer(OptionId::kLatencyMonitorThreshold) > 0 ? listener : nullptr;
}

// Returns the journal offset up to which the log is synced (`always`) or written (other policies).
// A reply that depends on no later byte may be sent.
uint64_t safe_offset(const persistence::AofWriter& writer, AppendFsync policy) {
  return policy == AppendFsync::kAlways ? writer.synced_offset() : writer.written_offset();
}

}  // namespace

AppendLog::AppendLog(const Config& config, const core::Clock& clock, persistence::Journal& journal,
                     persistence::FileSystem& files, Availability& availability,
                     LogListener* listener)
    : config_(config),
      clock_(clock),
      journal_(journal),
      files_(std::make_unique<LogFiles>(config, clock, journal, files)),
      availability_(availability),
      listener_(listener) {}

AppendLog::~AppendLog() {
  stop();
}

const persistence::AofWriter& AppendLog::writer() const {
  return files_->writer();
}

bool AppendLog::is_open() const {
  return writer().is_open();
}

bool AppendLog::is_always() const {
  return config_.append_fsync() == AppendFsync::kAlways;
}

uint64_t AppendLog::offset_of_replies(bool has_written) const {
  if (!is_open() || (!has_written && (fails() || sync_is_overdue()))) return 0;
  return journal_.end_offset();
}

bool AppendLog::is_safe(uint64_t offset) const {
  return !is_open() || offset <= safe_offset(writer(), config_.append_fsync());
}

bool AppendLog::fails() const {
  return availability_.has(Availability::kAppendLogFails);
}

std::string AppendLog::failure_text() const {
  return "IOERR Errors writing to the AOF file: " + availability_.append_log_reason() +
         "; this write is in memory and may be kept or lost";
}

void AppendLog::start() {
  stopping_ = false;
  thread_ = start_thread("append-log", [this] { run(); });
}

void AppendLog::stop() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void AppendLog::commit(size_t clients) {
  if (!is_always()) return write();
  if (!writer().is_open()) return;
  if (pacing_.add(clients) > 0 && !sync_here() && pacing_.are_enough()) wake();
}

void AppendLog::notify_progress() const {
  if (listener_ != nullptr) listener_->on_log_progress();
}

bool AppendLog::sync_here() {
  // The calling I/O thread does not sync if an older file is unsynced or the log fails. The log's
  // own thread handles these rare cases.
  if (!pacing_.is_quick() || writer().awaits_sync() || writer().has_lost_sync() || fails()) {
    return false;
  }
  // The thread that has set is_taken_ clears it before it notifies. So if is_taken_ is set here,
  // that notification is still to come, and this thread need not wait.
  if (is_taken_.exchange(true)) return true;
  pacing_.begin_here();
  write_and_report();
  sync_and_report();
  pacing_.end_here();
  is_taken_ = false;
  notify_progress();
  return true;
}

void AppendLog::write() {
  if (!writer().is_open() || is_always()) return;
  const uint64_t end = journal_.end_offset();
  // If the disk fails, only the log's thread retries. While a sync is overdue, nothing more is
  // written. Otherwise clients would get replies to writes that a power cut would lose.
  if (!fails() && !sync_is_overdue()) write_and_report();
  // If bytes are still unwritten, the log's thread is woken to write them. For example, after the
  // start of a rewrite that thread must first sync the previous file.
  if (writer().written_offset() < end) wake();
}

void AppendLog::wake() {
  {
    const std::scoped_lock lock(mutex_);
    wanted_ = true;
  }
  wake_.notify_one();
}

core::Result<> AppendLog::flush() {
  auto flushed = write_and_sync();
  if (flushed) return {};
  refuse_writes(std::string(core::without_code(flushed.error().message)));
  return flushed;
}

core::Result<> AppendLog::flush_or_report() {
  auto flushed = write_and_sync();
  if (!flushed) report_failure(flushed.error().message);
  return flushed;
}

core::Result<> AppendLog::prepare_rotation() {
  const bool had_lost_sync = writer().has_lost_sync();
  auto ready = files_->writer().prepare_rotation();
  if (!ready && !had_lost_sync && writer().has_lost_sync()) report_failure(ready.error().message);
  return ready;
}

core::Result<> AppendLog::write_and_sync() {
  if (!writer().is_open()) return {};
  // A rewrite begins a new file. Nothing is written to the new file until the previous file has
  // been synced. So if this call syncs the previous file, it then writes and syncs the new file.
  const bool is_behind_older_file = writer().awaits_sync();
  persistence::AofWriter& writer = files_->writer();
  const auto write_all = [&writer]() -> core::Result<> {
    if (auto written = writer.write(); !written) return written;
    return writer.write_position();
  };
  if (auto written = write_all(); !written) return written;
  if (auto synced = writer.sync(); !synced || !is_behind_older_file) return synced;
  if (auto written = write_all(); !written) return written;
  return writer.sync();
}

core::Result<> AppendLog::takes_more() const {
  // After a failure the log may also be closed, if it could not be opened again.
  if (fails()) {
    return core::Error{"the append log fails: " + availability_.append_log_reason()};
  }
  if (!is_open()) return {};
  if (sync_is_overdue()) return core::Error{"a sync of the append log does not end"};
  // The written offset is read first. Both offsets grow, so the other order could give an end
  // before the written offset.
  const uint64_t written_offset = writer().written_offset();
  if (journal_.end_offset() - written_offset > kBytesBehindMax) {
    return core::Error{"the append log is too far behind"};
  }
  return {};
}

void AppendLog::run() {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto gather_time = pacing_.gather_time();
    wake_.wait_for(lock, gather_time.count() > 0 ? gather_time : kTick,
                   [this] { return stopping_ || wanted_ || (pacing_.are_enough() && !is_taken_); });
    wanted_ = false;
    lock.unlock();
    if (writer().is_open()) {
      step();
    } else {
      pacing_.forget();
    }
    lock.lock();
  }
}

void AppendLog::step() {
  pacing_.stop_gathering();
  if (is_taken_.exchange(true)) return;
  const size_t clients = pacing_.begin();
  const int64_t now_us = clock_.monotonic_us();
  if (writer().awaits_sync() && !writer().has_lost_sync()) sync_and_report();
  // The log's thread also writes bytes that an I/O thread could not write while the previous file
  // was unsynced.
  const bool is_retry = fails();
  if (!is_retry || now_us >= next_retry_us_) {
    if (is_retry) next_retry_us_ = now_us + core::kSecondUs;
    write_and_report();
  }
  // The stream position is written even if there were no commands for the log, because the stream
  // also has PINGs and published messages. If this write fails, the write of the next command
  // reports the failure.
  if (now_us >= next_position_us_ && !fails()) {
    next_position_us_ = now_us + core::kSecondUs;
    (void)files_->writer().write_position();
  }
  const bool is_behind = writer().synced_offset() < writer().written_offset();
  const bool is_due = config_.append_fsync() == AppendFsync::kEverySecond &&
                      now_us >= next_sync_us_ && !syncs_suspended_;
  if (is_behind && !writer().has_lost_sync() && (is_always() || is_due)) {
    next_sync_us_ = now_us + core::kSecondUs;
    sync_and_report();
  }
  pacing_.end(clients, clock_.monotonic_us() - now_us);
  is_taken_ = false;
  // The listener is notified even if the safe offset has not grown. CONFIG SET appendfsync moves
  // that offset in both directions, and sync_here() may rely on this notification.
  notify_progress();
}

bool AppendLog::sync_is_overdue() const {
  return syncs_.is_running() && config_.append_fsync() == AppendFsync::kEverySecond &&
         syncs_.is_overdue(clock_.monotonic_us());
}

void AppendLog::write_and_report() {
  LogListener* const events = event_listener(config_, listener_);
  const bool is_beside_sync = syncs_.is_running();
  const int64_t began_us = events != nullptr ? clock_.monotonic_us() : 0;
  const auto written = files_->writer().write();
  if (events != nullptr) {
    const int64_t took_us = clock_.monotonic_us() - began_us;
    events->on_log_event("aof-write", took_us);
    events->on_log_event(is_beside_sync ? "aof-write-pending-fsync" : "aof-write-alone", took_us);
  }
  if (!written) return report_failure(written.error().message);
  if (!fails() || writer().has_lost_sync()) return;
  availability_.end(Availability::kAppendLogFails);
  log_notice("The append log takes writes again");
}

void AppendLog::sync_and_report() {
  syncs_.begin(clock_.monotonic_us());
  const auto synced = files_->writer().sync();
  const int64_t took_us = syncs_.end(clock_.monotonic_us());
  pacing_.record_sync(took_us);
  if (auto* const events = event_listener(config_, listener_); events != nullptr && is_always()) {
    events->on_log_event("aof-fsync-always", took_us);
  }
  if (!synced) report_failure(synced.error().message);
}

void AppendLog::report_failure(const std::string& reason) {
  const std::string cause(core::without_code(reason));
  if (!writer().is_open()) return;  // the log was switched off while the sync ran
  if (is_always() && listener_ != nullptr) listener_->on_log_fatal(cause);
  refuse_writes(cause);
}

void AppendLog::refuse_writes(const std::string& cause) {
  const bool is_new = availability_.append_log_failed(cause);
  // If the log was switched off before the call above, its failure must not block writes.
  if (!writer().is_open()) return availability_.end(Availability::kAppendLogFails);
  if (!is_new) return;
  log_error("The append log fails, writes are refused until it works: {}", cause);
  notify_progress();
}

}  // namespace server
