// SPDX-License-Identifier: MIT
#include "server/durability/append_log.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>

#include "core/clock.h"
#include "server/process/log.h"

namespace server {
namespace {

// As Redis counts delayed syncs.
constexpr int64_t kSyncIsOverdueUs = 2 * core::kSecondUs;
// The most that a client waits for others that may come.
constexpr int64_t kGatherMaxUs = 1000;
// Syncs that take longer on average are kept off the I/O threads: until then one is no worse for
// the thread's other clients than a long command.
constexpr int64_t kQuickSyncUs = 1000;
// How many make the average: one of 100 ms keeps the next thirty or so off the I/O threads.
constexpr int64_t kAveragedSyncs = 16;
// Of a replica whose file takes no bytes just now: half of this at most is room that grows twofold.
constexpr uint64_t kBytesBehindMax = uint64_t{32} << 20;
// A sync of a fast disk takes about as long as timers are late by default.
constexpr unsigned long kTimerSlackNs = 1000;

}  // namespace

std::string AppendLog::failure_text() const {
  return "IOERR Errors writing to the AOF file: " + availability_.append_log_reason() +
         "; this write is in memory and may be kept or lost";
}

void AppendLog::start() {
  stopping_ = false;
  thread_ = std::thread([this] { run(); });
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
  if (!writer_.is_open()) return;
  const size_t waiting = waiting_.fetch_add(clients) + clients;
  if (waiting > 0 && !sync_here() && waiting >= wakes_from_) wake();
}

bool AppendLog::sync_here() {
  // What is not as usual is the log's thread's: a file before this one, and one that fails.
  if (average_sync_us_ > kQuickSyncUs || writer_.awaits_sync() || writer_.has_lost_sync() ||
      fails()) {
    return false;
  }
  // Who has it calls on_progress when it is free again, which comes after this look.
  if (is_taken_.exchange(true)) return true;
  waiting_ = 0;
  write_and_report();
  sync_and_report();
  wakes_from_ = 1;  // if syncs have become slow, the first who waits wakes the log's thread
  is_taken_ = false;
  on_progress();
  return true;
}

void AppendLog::write() {
  if (!writer_.is_open() || is_always()) return;
  const uint64_t end = journal_.end_offset();
  // A disk that fails is tried again by the log's thread, not by every client. While a sync takes
  // too long nothing more is written, so that no more is answered that a power cut would take.
  if (!fails() && !sync_is_overdue()) write_and_report();
  // Right after a rewrite has begun, the file before is synced first, by the log's thread.
  if (writer_.written_offset() < end) wake();
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
  const std::string cause(core::without_code(flushed.error().message));
  if (availability_.append_log_failed(cause)) on_progress();
  return flushed;
}

core::Result<> AppendLog::write_and_sync() {
  if (!writer_.is_open()) return {};
  // Right after a rewrite has begun, the file before is synced first; until then nothing is
  // written.
  const bool is_behind_older_file = writer_.awaits_sync();
  if (auto written = writer_.write(); !written) return written;
  if (auto synced = writer_.sync(); !synced || !is_behind_older_file) return synced;
  if (auto written = writer_.write(); !written) return written;
  return writer_.sync();
}

core::Result<> AppendLog::takes_more() const {
  if (!is_open()) return {};
  if (fails()) {
    return core::Error{"the append log fails: " + availability_.append_log_reason()};
  }
  if (sync_is_overdue()) return core::Error{"a sync of the append log does not end"};
  if (journal_.end_offset() - writer_.written_offset() > kBytesBehindMax) {
    return core::Error{"the append log is too far behind"};
  }
  return {};
}

void AppendLog::run() {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, sleep_time(), [this] {
      return stopping_ || wanted_ || (waiting_ >= wakes_from_ && !is_taken_);
    });
    wanted_ = false;
    lock.unlock();
    if (writer_.is_open()) {
      step();
    } else {
      waiting_ = 0;
    }
    lock.lock();
  }
}

std::chrono::microseconds AppendLog::sleep_time() const {
  // Between requests the thread looks whether a second has passed.
  constexpr std::chrono::milliseconds kTick{100};
  return gather_us_ > 0 ? std::chrono::microseconds(gather_us_) : kTick;
}

void AppendLog::step() {
  gather_us_ = 0;
  if (is_taken_.exchange(true)) return;
  wakes_from_ = SIZE_MAX;  // the thread looks by itself when this is done
  const size_t clients = waiting_.exchange(0);
  const int64_t now_us = clock_.monotonic_us();
  if (writer_.awaits_sync() && !writer_.has_lost_sync()) sync_and_report();
  // Also what an I/O thread could not write, because the file before was not synced then.
  const bool is_retry = fails();
  if (!is_retry || now_us >= next_retry_us_) {
    if (is_retry) next_retry_us_ = now_us + core::kSecondUs;
    write_and_report();
  }
  const bool is_behind = writer_.synced_offset() < writer_.written_offset();
  const bool is_due = config_.append_fsync() == AppendFsync::kEverySecond &&
                      now_us >= next_sync_us_ && !syncs_suspended_;
  if (is_behind && !writer_.has_lost_sync() && (is_always() || is_due)) {
    next_sync_us_ = now_us + core::kSecondUs;
    sync_and_report();
    if (clock_.monotonic_us() - now_us > kSyncIsOverdueUs) ++delayed_syncs_;
  }
  wakes_from_ = std::max<size_t>(clients, 1);
  const int64_t took_us = clock_.monotonic_us() - now_us;
  if (clients > 1) gather_us_ = std::min(2 * took_us, kGatherMaxUs);
  is_taken_ = false;
  // Other threads write too, and not all of their bytes at once are those that someone waits for.
  const uint64_t safe = safe_offset();
  if (safe == told_offset_) return;
  told_offset_ = safe;
  on_progress();
}

bool AppendLog::sync_is_overdue() const {
  const int64_t began_us = sync_began_us_;
  return began_us != kNotSyncing && config_.append_fsync() == AppendFsync::kEverySecond &&
         clock_.monotonic_us() - began_us > kSyncIsOverdueUs;
}

void AppendLog::write_and_report() {
  if (auto written = writer_.write(); !written) return report_failure(written.error().message);
  if (!fails() || writer_.has_lost_sync()) return;
  availability_.end(Availability::kAppendLogFails);
  log_notice("The append log takes writes again");
}

void AppendLog::sync_and_report() {
  sync_began_us_ = clock_.monotonic_us();
  const auto synced = writer_.sync();
  const int64_t took_us = clock_.monotonic_us() - sync_began_us_.exchange(kNotSyncing);
  average_sync_us_ += (took_us - average_sync_us_) / kAveragedSyncs;
  if (!synced) report_failure(synced.error().message);
}

void AppendLog::report_failure(const std::string& reason) {
  const std::string cause(core::without_code(reason));
  if (!writer_.is_open()) return;  // it was switched off meanwhile
  if (is_always()) on_fatal(cause);
  const bool is_new = availability_.append_log_failed(cause);
  // Who has switched it off since may have looked before: nothing of it hinders writes any more.
  if (!writer_.is_open()) return availability_.end(Availability::kAppendLogFails);
  if (!is_new) return;
  log_error("The append log fails, writes are refused until it works: {}", cause);
  on_progress();
}

}  // namespace server
