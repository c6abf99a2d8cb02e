// SPDX-License-Identifier: MIT
#include "server/durability/durability.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/bloom/bit_array.h"
#include "core/clock.h"
#include "persistence/aof/aof_base_writer.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/durability/file_names.h"
#include "server/process/allocator.h"
#include "server/process/compatibility.h"
#include "server/process/log.h"

namespace server {
namespace {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

constexpr std::string_view kIsEnding = "ERR the server is shutting down";

// After a failure, so that a full disk is not asked all the time.
constexpr int64_t kRetrySaveUs = 5 * core::kSecondUs;
// A log that waits for a base to be trusted again keeps clients waiting for writes.
constexpr int64_t kRetryNeededBaseUs = 5 * core::kSecondUs;
constexpr int64_t kReportEveryUs = 10 * core::kSecondUs;

// One, two, four … minutes, at most an hour; the first two failures are tried again at once.
int64_t rewrite_delay_us(uint64_t failures) {
  constexpr uint64_t kFreeFailures = 3;
  if (failures < kFreeFailures) return 0;
  const uint64_t minutes = uint64_t{1} << std::min<uint64_t>(failures - kFreeFailures, 6);
  return static_cast<int64_t>(std::min<uint64_t>(minutes, 60)) * 60 * core::kSecondUs;
}

}  // namespace

Durability::Durability(const Parts& parts)
    : availability(parts.state.availability),
      parts_(parts),
      log_directory_(parts.files, ".", parts.config.text(OptionId::kAppendDirName),
                     persistence::AofNames(parts.config.text(OptionId::kAppendFileName))),
      writer_(parts.files, parts.journal, parts.clock,
              {log_directory_.path(), log_directory_.names()}),
      append_log_(parts.config, parts.clock, parts.journal, writer_, availability) {
  log_directory_.on_removed = [](const std::string& path) {
    log_notice("Removed '{}', which no append log needs any more", path);
  };
}

Durability::~Durability() {
  stop();
}

persistence::RdbWriteOptions Durability::write_options(bool is_aof_base) const {
  persistence::RdbWriteOptions options;
  options.compresses = parts_.config.flag(OptionId::kRdbCompression);
  options.has_sum = parts_.config.flag(OptionId::kRdbChecksum);
  options.server_version = kCompatibleRedisVersion;
  options.created_at_s = parts_.clock.wall_ms() / 1000;
  options.is_aof_base = is_aof_base;
  return options;
}

persistence::AofBaseFormat Durability::wanted_base_format() const {
  return parts_.config.flag(OptionId::kAofUseRdbPreamble) ? persistence::AofBaseFormat::kRdb
                                                          : persistence::AofBaseFormat::kCommands;
}

core::Result<persistence::RdbProgress> Durability::write_base(
    persistence::AofBaseFormat format, const std::string& path,
    const persistence::RdbWriteOptions& options) const {
  if (format == persistence::AofBaseFormat::kCommands) {
    return persistence::write_command_base_file(parts_.files, path, parts_.keyspace,
                                                {.on_progress = options.on_progress});
  }
  return persistence::write_rdb_file(parts_.files, path, parts_.keyspace, options);
}

bool Durability::claim(Task task) {
  Task none = Task::kNone;
  if (!task_.compare_exchange_strong(none, task)) return false;
  parts_.state.may_have_child = true;
  return true;
}

void Durability::release() {
  append_log_.suspend_syncs(false);
  parts_.state.may_have_child = false;
  task_ = Task::kNone;
}

core::Result<Durability::Start> Durability::start_save(Locking locking, bool may_wait) {
  if (refuses_children_) return core::Error{std::string(kIsEnding)};
  if (!claim(Task::kSave)) {
    if (task_ == Task::kSave) return core::Error{"ERR Background save already in progress"};
    if (!may_wait) {
      return core::Error{
          "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
          "in order to schedule a BGSAVE whenever possible."};
    }
    save_is_scheduled_ = true;
    return Start::kScheduled;
  }
  if (auto forked = fork_child(Task::kSave, locking); !forked) {
    const std::scoped_lock lock(mutex_);
    record(snapshot_record_, false);
    availability.begin(Availability::kSnapshotFailed);
    release();
    return forked.error();
  }
  return Start::kStarted;
}

core::Result<Durability::Start> Durability::request_rewrite() {
  if (refuses_children_) return core::Error{std::string(kIsEnding)};
  if (!claim(Task::kRewrite)) {
    if (task_ == Task::kRewrite) {
      return core::Error{"ERR Background append only file rewriting already in progress"};
    }
    rewrite_is_scheduled_ = true;
    return Start::kScheduled;
  }
  rewrite_is_requested_ = true;
  wake_.notify_one();
  return Start::kStarted;
}

void Durability::begin_rewrite() {
  // An end that is taken back lets it begin after all.
  rewrite_is_scheduled_ = refuses_children_.load();
  if (rewrite_is_scheduled_) return release();
  const bool had_lost_sync = writer_.has_lost_sync();
  core::Result<> ready;
  if (writer_.is_open()) ready = writer_.prepare_rotation();
  // No sync comes any more that would find it out.
  if (!ready && !had_lost_sync && writer_.has_lost_sync()) {
    append_log_.report_failure(ready.error().message);
  }
  if (ready) ready = fork_child(Task::kRewrite, Locking::kTake);
  if (ready) return;
  log_warning("Can't rewrite the append log: {}", ready.error().message);
  const std::scoped_lock lock(mutex_);
  record(rewrite_record_, false);
  next_rewrite_us_ = parts_.clock.monotonic_us() +
                     std::max(kRetrySaveUs, rewrite_delay_us(rewrite_record_.failures_in_a_row));
  release();
}

std::unique_lock<OrderedMutex> Durability::hold_stream(Locking locking) const {
  if (stream_ == nullptr) return {};
  return stream_->hold(locking);
}

core::Result<> Durability::fork_child(Task task, Locking locking) {
  const auto stream = hold_stream(locking);
  const auto stripes =
      parts_.keyspace.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
  const bool is_log_open = writer_.is_open();
  if (task == Task::kRewrite && is_log_open) {
    if (auto rotated = writer_.rotate(); !rotated) return rotated;
  }
  const bool is_save = task == Task::kSave;
  auto options = write_options(!is_save);
  const auto base_format = wanted_base_format();
  if (is_save) options.replication = position();
  bool is_exact = options.replication && options.replication->is_foreign;
  if (is_exact && !exact_child_fits()) {
    is_exact = false;
    options.replication.reset();
    log_notice(
        "The snapshot will not say where in the leader's stream it stands: too little "
        "memory is free to copy all filters");
  }
  // Named here: the child has a process id of its own.
  const persistence::RdbPlace place{snapshot_path(), temporary_snapshot()};
  const std::string base = temporary_base();
  auto child = begin_child(
      [&](SaveChild::Figures& figures) -> core::Result<> {
        // Its many bytes would hold up the sync of the log's last file, which clients wait for.
        constexpr useconds_t kPauseUs = 500;
        while (!is_save && !figures.may_begin) ::usleep(kPauseUs);
        auto child_options = options;
        child_options.on_progress = [&figures](const persistence::RdbProgress& progress) {
          figures.written_bytes = progress.bytes;
          figures.written_keys = progress.keys;
        };
        const auto saved =
            is_save ? persistence::save_rdb(parts_.files, place, parts_.keyspace, child_options)
                    : write_base(base_format, base, child_options);
        if (!saved) return saved.error();
        return {};
      },
      {}, is_exact);
  if (!child) return child.error();
  if (!is_save) {
    const std::scoped_lock lock(mutex_);
    base_format_ = base_format;
    rewrites_closed_log_ = !is_log_open;
  }
  adopt_child(std::move(*child), is_save ? "saving" : "append only file rewriting");
  return {};
}

void Durability::adopt_child(std::unique_ptr<SaveChild> child, std::string_view purpose) {
  last_fork_us_ = child->fork_us();
  log_notice("Background {} started by pid {}, the fork took {} us", purpose, child->process_id(),
             child->fork_us());
  append_log_.suspend_syncs(parts_.config.flag(OptionId::kNoAppendFsyncOnRewrite));
  const std::scoped_lock lock(mutex_);
  child_ = std::move(child);
  changes_at_fork_ = parts_.state.changes;
  bytes_at_fork_ = allocator_figures().allocated_bytes + core::bloom::mapped_bytes();
  keys_at_fork_ = 0;
  for (unsigned i = 0; i < parts_.keyspace.database_count(); ++i) {
    keys_at_fork_ += parts_.keyspace.db_size(i);
  }
}

core::Result<> Durability::save(Locking locking) {
  if (!claim(Task::kSave)) return core::Error{"ERR Background save already in progress"};
  auto saved = save_claimed(locking);
  release();
  return saved;
}

core::Result<> Durability::save_claimed(Locking locking) {
  const auto stream = hold_stream(locking);
  return save_here(locking);
}

core::Result<> Durability::save_here(Locking locking) {
  const uint64_t changes = parts_.state.changes;
  core::Result<persistence::RdbProgress> saved = core::Error{};
  {
    const auto stripes =
        parts_.keyspace.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
    auto options = write_options(false);
    options.replication = position();
    saved = persistence::save_rdb(parts_.files, {snapshot_path(), temporary_snapshot()},
                                  parts_.keyspace, options);
  }
  const std::scoped_lock lock(mutex_);
  snapshot_record_.last_was_ok = saved.has_value();
  if (!saved) {
    log_warning("Error saving DB on disk: {}", saved.error().message);
    return saved.error();
  }
  ++snapshot_record_.count;
  changes_at_save_ = changes;
  last_save_s_ = parts_.clock.wall_ms() / 1000;
  availability.end(Availability::kSnapshotFailed);
  log_notice("DB saved on disk");
  return {};
}

void Durability::start() {
  append_log_.start();
  thread_ = std::thread([this] { run(); });
}

void Durability::run() {
  constexpr std::chrono::milliseconds kTick{50};
  std::unique_lock lock(wake_mutex_);
  while (!is_stopping_) {
    lock.unlock();
    tick();
    lock.lock();
    switched_.notify_all();
    wake_.wait_for(lock, kTick, [this] {
      return is_stopping_ || rewrite_is_requested_ || switch_answered_ < switch_requests_;
    });
  }
}

void Durability::stop() {
  {
    const std::scoped_lock lock(wake_mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  append_log_.stop();
}

void Durability::tick() {
  poll_child();
  if (rewrite_is_requested_.exchange(false)) begin_rewrite();
  follow_log_switch();
  start_what_is_due();
}

void Durability::poll_child() {
  const std::scoped_lock one_at_a_time(poll_mutex_);
  std::unique_lock lock(mutex_);
  if (child_ == nullptr) return;
  const auto result = child_->poll();
  // A sync that has failed is not waited for: the base is what makes good for it.
  if (!writer_.awaits_sync() || writer_.has_lost_sync()) child_->let_begin();
  if (!result) {
    const int64_t now_us = parts_.clock.monotonic_us();
    if (now_us - child_->started_us() > kReportEveryUs && now_us >= next_report_us_) {
      next_report_us_ = now_us + kReportEveryUs;
      const SaveProgress progress = progress_of_child();
      log_notice("Background save: {:.0f} %, {} of {} keys, {} bytes written, about {} s left",
                 progress.share() * 100, progress.written_keys, progress.total_keys,
                 progress.written_bytes, progress.left_s());
    }
    return;
  }
  if (task_ == Task::kTransfer) {
    child_.reset();
    const auto finished = std::move(transfer_.finished);
    transfer_ = SnapshotTransfer{};
    lock.unlock();
    release();
    return finished(*result);
  }
  const bool was_stopped = !*result && child_->was_killed();
  if (task_ == Task::kSave) {
    finish_save(*result, was_stopped);
    child_.reset();
  } else {
    // Renames and syncs: not under the mutex that INFO waits for.
    lock.unlock();
    finish_rewrite(*result, was_stopped);
    lock.lock();
    child_.reset();
  }
  release();
}

// REQUIRES: mutex_.
void Durability::record(SaveRecord& record, bool is_ok) {
  record.last_was_ok = is_ok;
  if (child_ != nullptr) {
    record.last_time_s = (parts_.clock.monotonic_us() - child_->started_us()) / core::kSecondUs;
    record.last_copied_bytes = child_->figures().copied_bytes;
  }
  record.count += is_ok ? 1 : 0;
  record.failures_in_a_row = is_ok ? 0 : record.failures_in_a_row + 1;
}

// REQUIRES: mutex_.
void Durability::finish_save(const core::Result<>& result, bool was_stopped) {
  if (!result) (void)parts_.files.remove(temporary_snapshot());
  // Nothing is wrong with the disk then, so nobody's writes are refused for it.
  if (was_stopped) return log_notice("Background saving was stopped");
  record(snapshot_record_, result.has_value());
  if (!result) {
    log_warning("Background saving failed: {}", result.error().message);
    availability.begin(Availability::kSnapshotFailed);
    next_save_us_ = parts_.clock.monotonic_us() + kRetrySaveUs;
    return;
  }
  log_notice("Background saving terminated with success, {} MB of memory were copied meanwhile",
             child_->figures().copied_bytes.load() >> 20);
  availability.end(Availability::kSnapshotFailed);
  changes_at_save_ = changes_at_fork_;
  last_save_s_ = parts_.clock.wall_ms() / 1000;
}

void Durability::finish_rewrite(core::Result<> result, bool was_stopped) {
  if (result) {
    result = rewrites_closed_log_ ? log_directory_.replace_files(temporary_base(), base_format_)
                                  : writer_.replace_base(temporary_base(), base_format_);
  }
  if (result) files_are_stale_ = false;
  // Replies may have waited for the file that the new base replaces.
  append_log_.wake();
  const std::scoped_lock lock(mutex_);
  if (!result) (void)parts_.files.remove(temporary_base());
  if (was_stopped) {
    next_rewrite_us_ = parts_.clock.monotonic_us() + core::kSecondUs;
    return log_notice("Background append only file rewriting was stopped");
  }
  record(rewrite_record_, result.has_value());
  if (result) {
    log_notice("Background append only file rewriting finished successfully");
    return;
  }
  log_warning("Background append only file rewriting failed: {}", result.error().message);
  next_rewrite_us_ = parts_.clock.monotonic_us() +
                     std::max(core::kSecondUs, rewrite_delay_us(rewrite_record_.failures_in_a_row));
}

void Durability::start_what_is_due() {
  if (task_ != Task::kNone || refuses_children_) return;
  const int64_t now_us = parts_.clock.monotonic_us();
  if (writer_.needs_base() || writer_.has_lost_sync()) {
    next_rewrite_us_ = std::min(next_rewrite_us_, now_us + kRetryNeededBaseUs);
  }
  const bool is_due = writer_.is_open() && now_us >= next_rewrite_us_ && rewrite_is_due();
  if (rewrite_is_scheduled_ || is_due) {
    if (claim(Task::kRewrite)) begin_rewrite();
    return;
  }
  if (save_is_scheduled_.exchange(false) || (now_us >= next_save_us_ && save_is_due())) {
    if (!start_save(Locking::kTake, false)) next_save_us_ = now_us + kRetrySaveUs;
  }
}

bool Durability::save_is_due() const {
  const uint64_t changes = changes_since_save();
  const int64_t elapsed_s = parts_.clock.wall_ms() / 1000 - last_save_s_;
  const std::string points = parts_.config.text(OptionId::kSave);
  const char* at = points.data();
  const char* const end = at + points.size();
  const auto number = [&] {
    uint64_t value = 0;
    at = std::from_chars(at, end, value).ptr;
    if (at != end) ++at;
    return value;
  };
  while (at != end) {
    const auto seconds = static_cast<int64_t>(number());
    const uint64_t changes_needed = number();
    if (elapsed_s > seconds && changes > 0 && changes >= changes_needed) return true;
  }
  return false;
}

bool Durability::rewrite_is_due() const {
  // Only a new base makes good for a failed sync.
  if (writer_.needs_base() || writer_.has_lost_sync()) return true;
  const auto percentage =
      static_cast<uint64_t>(parts_.config.integer(OptionId::kAutoAofRewritePercentage));
  const uint64_t size = writer_.size_bytes();
  if (percentage == 0 ||
      size < static_cast<uint64_t>(parts_.config.integer(OptionId::kAutoAofRewriteMinSize))) {
    return false;
  }
  const uint64_t base = std::max<uint64_t>(writer_.base_size_bytes(), 1);
  return static_cast<double>(size - std::min(size, base)) * 100 >=
         static_cast<double>(percentage) * static_cast<double>(base);
}

SaveRecord Durability::snapshot_record() const {
  const std::scoped_lock lock(mutex_);
  return snapshot_record_;
}

SaveRecord Durability::rewrite_record() const {
  const std::scoped_lock lock(mutex_);
  return rewrite_record_;
}

SaveProgress Durability::progress() const {
  const std::scoped_lock lock(mutex_);
  return child_ == nullptr ? SaveProgress{} : progress_of_child();
}

SaveProgress Durability::progress_of_child() const {
  return {parts_.clock.monotonic_us() - child_->started_us(), child_->figures().written_bytes,
          bytes_at_fork_, child_->figures().written_keys, keys_at_fork_};
}

}  // namespace server
