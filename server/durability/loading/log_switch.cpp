// SPDX-License-Identifier: MIT
#include "server/durability/loading/log_switch.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/server_state.h"
#include "server/base/process/tick_thread.h"
#include "server/durability/data/data_writer.h"
#include "server/durability/data/file_names.h"
#include "server/durability/loading/recovery.h"
#include "server/durability/log/append_log.h"
#include "server/durability/log/log_files.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"

namespace server {
namespace {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

// Pause after a failure, so that a full disk is not retried continuously.
constexpr int64_t kRetryOpenUs = 5 * core::kSecondUs;

}  // namespace

core::Result<> LogSwitch::await() {
  // While data are being loaded, the append log is neither opened nor closed. The switch happens
  // when the load has ended.
  if (parts_.state.availability.has(Availability::kLoading)) return {};
  constexpr std::chrono::seconds kWaitMax{1};
  std::unique_lock lock(mutex_);
  const uint64_t request = ++requests_;
  error_.reset();
  lock.unlock();
  if (thread_.is_running()) {
    thread_.wake();
  } else {
    follow();
  }
  lock.lock();
  if (thread_.is_running()) {
    switched_.wait_for(lock, kWaitMax, [&] { return answered_ >= request; });
  }
  // A caller that timed out no longer counts as pending.
  answered_ = std::max(answered_, request);
  if (error_) return *error_;
  return {};
}

bool LogSwitch::is_awaited() {
  const std::scoped_lock lock(mutex_);
  return answered_ < requests_;
}

void LogSwitch::follow() {
  const std::scoped_lock one_at_a_time(switch_mutex_);
  uint64_t request = 0;
  bool is_awaited = false;
  {
    // The request's number must be read before try_switch() reads wants_log_. Otherwise a request
    // that arrives between the two reads would get the result of an earlier request.
    const std::scoped_lock lock(mutex_);
    request = requests_;
    is_awaited = answered_ < request;
  }
  const auto outcome = try_switch(is_awaited);
  if (!outcome) return;
  const std::scoped_lock lock(mutex_);
  answered_ = std::max(answered_, request);
  error_.reset();
  if (!*outcome) error_ = outcome->error();
  switched_.notify_all();
}

// The log may be started while a child process saves. It must not be started while all data are
// replaced or loaded, nor while the base of a closed log is being written.
bool LogSwitch::may_begin() {
  SaveSlot& slot = saves_.slot;
  if (slot.task() == SaveTask::kNone) return true;
  if (!slot.has_child()) return false;
  if (slot.task() != SaveTask::kRewrite) return true;
  slot.kill_child();
  return false;
}

// Returns nullopt if the switch must be retried.
std::optional<core::Result<>> LogSwitch::try_switch(bool is_awaited) {
  if (parts_.state.availability.has(Availability::kLoading)) return std::nullopt;
  const core::Result<> done;
  if (wants_log_ == log_.is_open()) {
    // The log's files are stale if all data were replaced and then the log could not be opened
    // again. Writes are rejected while the files are stale. Once the log is switched off, its files
    // no longer matter, so writes are accepted again.
    if (!wants_log_ && log_.files().are_stale()) {
      log_.files().set_stale(false);
      parts_.state.availability.end(Availability::kAppendLogFails);
    }
    return done;
  }
  if (!wants_log_) {
    // SHUTDOWN may be writing the log's base. If it fails, the log is closed then.
    if (saves_.slot.refuses_children() && saves_.slot.task() != SaveTask::kNone) {
      return std::nullopt;
    }
    // A running rewrite is killed before the log is closed. Otherwise it would install a new base
    // for a closed log.
    if (saves_.slot.task() == SaveTask::kRewrite) {
      saves_.slot.kill_child();
      return std::nullopt;
    }
    {
      const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
      close();
    }
    log_.files().set_stale(false);
    log_.notify_progress();
    log_notice("The append log is off");
    return done;
  }
  if (!may_begin()) return std::nullopt;
  const int64_t now_us = parts_.clock.monotonic_us();
  if (!is_awaited && now_us < next_try_us_) return std::nullopt;
  auto opened = open();
  if (!opened) {
    log_warning("Can't switch the append log on: {}", opened.error().message);
    next_try_us_ = now_us + kRetryOpenUs;
    return opened;
  }
  saves_.rewrites.schedule(true);
  log_notice("The append log is on; its base is being written");
  return done;
}

void LogSwitch::close() {
  if (auto flushed = log_.flush(); !flushed) {
    log_warning("The last bytes of the append log: {}", flushed.error().message);
  }
  parts_.journal.set_active(false);
  log_.files().writer().close();
  saves_.rewrites.schedule(false);
  parts_.state.availability.end(Availability::kAppendLogFails);
}

core::Result<> LogSwitch::open() {
  auto start = log_.files().directory().find();
  if (!start) return start.error();
  const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
  if (auto opened = log_.files().open_without_base(std::move(start->manifest)); !opened) {
    return opened;
  }
  parts_.journal.set_active(true);
  return {};
}

core::Result<> LogSwitch::open_recovered(Recovered recovered) {
  wants_log_ = parts_.config.flag(OptionId::kAppendOnly);
  if (!wants_log_) return {};
  auto opened = log_.files().open_found(std::move(recovered.manifest), recovered.tail,
                                        recovered.log_bytes, recovered.needs_base);
  if (!opened) return opened;
  if (recovered.needs_base) {
    if (auto written = saves_.rewrites.write_first_base(); !written) return written;
  }
  parts_.journal.set_active(true);
  return {};
}

// Opens the log if needed, and writes its base if the log has none. Until the base is written, a
// restart loads the previous data. If a sync of the previous log has failed, these data may lack
// the last writes of that log.
core::Result<> LogSwitch::complete() {
  if (!wants_log_) return {};
  {
    const std::scoped_lock one_at_a_time(switch_mutex_);
    if (!log_.is_open()) {
      if (auto opened = open(); !opened) return opened;
    }
  }
  if (!log_.files().needs_new_base()) return {};
  log_notice("The append log lacks a base. Writing it");
  return saves_.rewrites.rewrite_here();
}

void LogSwitch::close_with(const std::function<void()>& also) {
  {
    const std::scoped_lock one_at_a_time(switch_mutex_);
    const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kExclusive);
    if (log_.is_open()) close();
    also();
  }
  log_.notify_progress();
}

void LogSwitch::begin_afresh(bool is_empty) {
  const std::scoped_lock one_at_a_time(switch_mutex_);
  if (!wants_log_) return (void)parts_.files.remove(temporary_base());
  log_.files().set_stale(true);
  const auto begun = begin_with_base(is_empty);
  if (begun) return;
  (void)parts_.files.remove(temporary_base());
  const std::string reason(core::without_code(begun.error().message));
  log_error("The append log can't be started again, writes are refused until it is: {}", reason);
  parts_.state.availability.append_log_failed(reason);
}

core::Result<> LogSwitch::begin_with_base(bool is_empty) {
  constexpr auto kRdb = persistence::AofBaseFormat::kRdb;
  if (is_empty) {
    auto written = writer_.write_base(kRdb, temporary_base(), writer_.options(true));
    if (!written) return written;
  }
  if (auto opened = open(); !opened) return opened;
  auto replaced = log_.files().replace_base(temporary_base(), kRdb);
  if (replaced) saves_.rewrites.schedule(writer_.base_format() != kRdb);
  return replaced;
}

core::Result<> LogSwitch::change_directory(const std::function<core::Result<>()>& change) {
  // Waiting for switch_mutex_ could deadlock. Its holder may wait for stripes, and the thread that
  // holds those stripes may wait for the CONFIG SET that calls this function.
  const std::unique_lock one_at_a_time(switch_mutex_, std::try_to_lock);
  if (!one_at_a_time || wants_log_ || log_.is_open()) {
    return core::Error{"the append log is in use there, see appendonly"};
  }
  if (parts_.state.availability.has(Availability::kLoading) ||
      !saves_.slot.claim(SaveTask::kSave)) {
    return core::Error{"data is being loaded or saved there"};
  }
  auto changed = change();
  saves_.slot.release();
  return changed;
}

}  // namespace server
