// SPDX-License-Identifier: MIT
#include "server/durability/saves/base_rewriter.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "core/clock.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/durability/data/data_writer.h"
#include "server/durability/data/file_names.h"
#include "server/durability/log/append_log.h"
#include "server/durability/log/log_files.h"
#include "server/durability/saves/save_policy.h"
#include "server/durability/saves/save_slot.h"

namespace server {
namespace {

using core::keyspace::Locking;

constexpr int64_t kRetryForkUs = 5 * core::kSecondUs;
// Delay before a failed rewrite is retried while the log has no valid base. The delay is short,
// because clients cannot write until the rewrite succeeds.
constexpr int64_t kRetryNeededBaseUs = 5 * core::kSecondUs;

}  // namespace

core::Result<SaveStart> BaseRewriter::request() {
  if (slot_.refuses_children()) return core::Error{std::string(kServerIsEnding)};
  if (!slot_.claim(SaveTask::kRewrite)) {
    if (slot_.task() == SaveTask::kRewrite) {
      return core::Error{"ERR Background append only file rewriting already in progress"};
    }
    is_scheduled_ = true;
    return SaveStart::kScheduled;
  }
  is_requested_ = true;
  return SaveStart::kStarted;
}

void BaseRewriter::start_if_requested() {
  if (is_requested_.exchange(false)) start();
}

void BaseRewriter::start() {
  // While SHUTDOWN prevents new child processes, the rewrite stays scheduled. It starts if SHUTDOWN
  // is aborted.
  is_scheduled_ = slot_.refuses_children();
  if (is_scheduled_) return slot_.release();
  core::Result<> ready;
  if (log_.is_open()) ready = log_.prepare_rotation();
  if (ready) ready = fork();
  if (ready) return;
  log_warning("Can't rewrite the append log: {}", ready.error().message);
  history_.record_no_child();
  next_us_ = parts_.clock.monotonic_us() +
             std::max(kRetryForkUs, rewrite_delay_us(record().failures_in_a_row));
  slot_.release();
}

core::Result<> BaseRewriter::fork() {
  const auto stream = writer_.hold_stream(Locking::kTake);
  const auto stripes = writer_.lock_stripes(Locking::kTake);
  if (log_.is_open()) {
    if (auto rotated = log_.files().writer().rotate(); !rotated) return rotated;
  }
  format_ = writer_.base_format();
  auto options = writer_.options(true);
  // The name contains the id of this process. It is determined before the fork, because the child
  // has another id.
  const std::string path = temporary_base();
  const auto work = [&](SaveFigures& figures) {
    // Clients wait for the sync of the log's previous file, and the child's many writes would delay
    // this sync. So the child waits until the parent lets it begin.
    constexpr useconds_t kPauseUs = 500;
    while (!figures.may_begin) ::usleep(kPauseUs);
    options.on_progress = report_to(figures);
    return writer_.write_base(format_, path, options);
  };
  return slot_.begin_child(work, {.purpose = "append only file rewriting"});
}

void BaseRewriter::finish(const SaveEnd& end) {
  core::Result<> result = end.result;
  // The base may contain bits that commands set after the fork. These commands must be in the log
  // before a start can load the new base, so the log is flushed. Otherwise a start would load data
  // that are newer than the log's last position. After a failed sync of the log, a flush would fail
  // too. Only a new base repairs such a log, so the flush is then skipped.
  if (result && log_.is_open() && !log_.writer().has_lost_sync()) result = log_.flush_or_report();
  if (result) result = log_.files().replace_base(temporary_base(), format_);
  // Replies may wait because their writes were not safe in a file that the new base has replaced.
  // The log's thread is woken, so that it sends the replies that are safe now.
  log_.wake();
  if (!result) (void)parts_.files.remove(temporary_base());
  const int64_t now_us = parts_.clock.monotonic_us();
  if (end.was_stopped) {
    next_us_ = now_us + core::kSecondUs;
    return log_notice("Background append only file rewriting was stopped");
  }
  history_.record_end(end, result.has_value());
  if (result) {
    return log_notice("Background append only file rewriting finished successfully");
  }
  log_warning("Background append only file rewriting failed: {}", result.error().message);
  next_us_ = now_us + std::max(core::kSecondUs, rewrite_delay_us(record().failures_in_a_row));
}

bool BaseRewriter::start_if_due() {
  if (!is_scheduled_ && !is_due()) return false;
  if (slot_.claim(SaveTask::kRewrite)) start();
  return true;
}

bool BaseRewriter::is_due() {
  if (!log_.is_open()) return false;
  const int64_t now_us = parts_.clock.monotonic_us();
  const bool is_needed = log_.files().needs_new_base();
  if (is_needed) next_us_ = std::min(next_us_, now_us + kRetryNeededBaseUs);
  if (now_us < next_us_) return false;
  const persistence::AofWriter& log = log_.writer();
  const auto option = [this](OptionId id) {
    return static_cast<uint64_t>(parts_.config.integer(id));
  };
  return is_needed || log_has_outgrown(log.size_bytes(), log.base_size_bytes(),
                                       option(OptionId::kAutoAofRewritePercentage),
                                       option(OptionId::kAutoAofRewriteMinSize));
}

core::Result<> BaseRewriter::rewrite_here() {
  if (auto ready = log_.prepare_rotation(); !ready) return ready;
  const auto format = writer_.base_format();
  {
    const auto stream = writer_.hold_stream(Locking::kTake);
    const auto stripes = writer_.lock_stripes(Locking::kTake);
    if (auto rotated = log_.files().writer().rotate(); !rotated) return rotated;
    auto written = writer_.write_base(format, temporary_base(), writer_.options(true));
    if (!written) return written;
  }
  return log_.files().replace_base(temporary_base(), format);
}

// Makes the loaded snapshot the base of a new log. Without that base the log could not be loaded.
core::Result<> BaseRewriter::write_first_base() {
  const auto format = writer_.base_format();
  auto written = writer_.write_base(format, temporary_base(), writer_.options(true));
  if (!written) return written;
  return log_.files().replace_base(temporary_base(), format);
}

}  // namespace server
