// SPDX-License-Identifier: MIT
//
// The part of Durability that switches the append log on and off while the server runs.
#include <algorithm>
#include <chrono>
#include <utility>

#include "server/durability/durability.h"
#include "server/process/log.h"

namespace server {
namespace {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

// After a failure, so that a full disk is not asked all the time.
constexpr int64_t kRetryUs = 5'000'000;

}  // namespace

core::Result<> Durability::await_log_switch() {
  // Its end begins the log.
  if (availability.has(Availability::kLoading)) return {};
  constexpr std::chrono::seconds kWaitMax{1};
  std::unique_lock lock(wake_mutex_);
  const uint64_t request = ++switch_requests_;
  switch_error_.reset();
  if (!thread_.joinable()) {
    lock.unlock();
    follow_log_switch();
    lock.lock();
  } else {
    wake_.notify_one();
    switched_.wait_for(lock, kWaitMax, [&] { return switch_answered_ >= request; });
  }
  // Who has given up waiting keeps the thread from its sleep no more.
  switch_answered_ = std::max(switch_answered_, request);
  if (switch_error_) return *switch_error_;
  return {};
}

// Beside a child that saves, but not while all data goes or comes, and not while the base of the
// log that was is still being written. REQUIRES: log_switch_mutex_.
bool Durability::log_may_begin() {
  const std::scoped_lock lock(mutex_);
  if (task_ == Task::kNone) return true;
  if (child_ == nullptr) return false;
  if (task_ != Task::kRewrite) return true;
  child_->kill();
  return false;
}

void Durability::follow_log_switch() {
  const std::scoped_lock one_at_a_time(log_switch_mutex_);
  uint64_t request = 0;
  bool is_awaited = false;
  {
    // Before the wish is read: what is found answers nobody who wishes for something later.
    const std::scoped_lock lock(wake_mutex_);
    request = switch_requests_;
    is_awaited = switch_answered_ < request;
  }
  const auto outcome = try_log_switch(is_awaited);
  if (!outcome) return;
  const std::scoped_lock lock(wake_mutex_);
  switch_answered_ = std::max(switch_answered_, request);
  switch_error_.reset();
  if (!*outcome) switch_error_ = outcome->error();
}

// Nothing when it has to be tried again. REQUIRES: log_switch_mutex_.
std::optional<core::Result<>> Durability::try_log_switch(bool is_awaited) {
  const core::Result<> done;
  if (wants_log_ == writer_.is_open()) {
    // A log that could not be begun anew is given up.
    if (!wants_log_ && files_are_stale_.exchange(false)) {
      availability.end(Availability::kAppendLogFails);
    }
    return done;
  }
  if (!wants_log_) {
    // A rewrite would have nothing left to put its base into.
    if (task_ == Task::kRewrite) {
      const std::scoped_lock lock(mutex_);
      if (child_ != nullptr) child_->kill();
      return std::nullopt;
    }
    {
      const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
      close_log();
    }
    files_are_stale_ = false;
    append_log_.on_progress();
    log_notice("The append log is off");
    return done;
  }
  if (!log_may_begin()) return std::nullopt;
  const int64_t now_us = parts_.clock.monotonic_us();
  if (!is_awaited && now_us < next_rewrite_us_) return std::nullopt;
  auto begun = begin_log();
  if (!begun) {
    log_warning("Can't switch the append log on: {}", begun.error().message);
    next_rewrite_us_ = now_us + kRetryUs;
  }
  return begun;
}

// REQUIRES: log_switch_mutex_, all stripes.
void Durability::close_log() {
  if (auto flushed = append_log_.flush(); !flushed) {
    log_warning("The last bytes of the append log: {}", flushed.error().message);
  }
  parts_.journal.set_active(false);
  writer_.close();
  rewrite_is_scheduled_ = false;
  availability.end(Availability::kAppendLogFails);
}

core::Result<> Durability::change_directory(const std::function<core::Result<>()>& change) {
  // Who has it may wait for stripes, whose holder may wait for the CONFIG SET that calls this.
  const std::unique_lock one_at_a_time(log_switch_mutex_, std::try_to_lock);
  if (!one_at_a_time || wants_log_ || writer_.is_open()) {
    return core::Error{"the append log is in use there, see appendonly"};
  }
  if (availability.has(Availability::kLoading) || !claim(Task::kSave)) {
    return core::Error{"data is being loaded or saved there"};
  }
  auto changed = change();
  release();
  return changed;
}

core::Result<> Durability::begin_log() {
  if (auto opened = open_log(); !opened) return opened;
  rewrite_is_scheduled_ = true;
  log_notice("The append log is on; its base is being written");
  return {};
}

// REQUIRES: log_switch_mutex_. The new file is named by no manifest before its base is there: until
// then a start would find what was there before.
core::Result<> Durability::open_log() {
  auto start = log_directory_.find();
  if (!start) return start.error();
  const auto begin = files_are_stale_ ? persistence::AofWriter::Begin::kAfresh
                                      : persistence::AofWriter::Begin::kWithBase;
  const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
  if (auto opened = writer_.open(std::move(start->manifest), std::nullopt, 0, begin); !opened) {
    return opened;
  }
  parts_.journal.set_active(true);
  return {};
}

}  // namespace server
