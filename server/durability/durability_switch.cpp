// SPDX-License-Identifier: MIT
//
// The part of Durability that switches the append log on and off while the server runs.
#include <utility>

#include "server/durability/durability.h"
#include "server/log.h"

namespace server {
namespace {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

// After a failure, so that a full disk is not asked all the time.
constexpr int64_t kRetryUs = 5'000'000;

}  // namespace

void Durability::follow_log_switch() {
  const std::scoped_lock one_at_a_time(log_switch_mutex_);
  if (wants_log_ == writer_.is_open()) return;
  if (!wants_log_) {
    // A rewrite would have nothing left to put its base into.
    if (task_ == Task::kRewrite) {
      const std::scoped_lock lock(mutex_);
      if (child_ != nullptr) child_->kill();
      return;
    }
    {
      const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
      close_log();
    }
    append_log_.on_progress();
    log_notice("The append log is off");
    return;
  }
  if (task_ != Task::kNone || parts_.clock.monotonic_us() < next_rewrite_us_) return;
  if (auto begun = begin_log(); !begun) {
    log_warning("Can't switch the append log on: {}", begun.error().message);
    next_rewrite_us_ = parts_.clock.monotonic_us() + kRetryUs;
  }
}

// REQUIRES: log_switch_mutex_, all stripes.
void Durability::close_log() {
  if (auto flushed = append_log_.flush(); !flushed) {
    log_warning("The last bytes of the append log: {}", flushed.error().message);
  }
  parts_.journal.set_active(false);
  writer_.close();
  availability.end(Availability::kAppendLogFails);
}

// The new file is named by no manifest before its base is there: until then a start would find what
// was there before.
core::Result<> Durability::begin_log() {
  auto start = log_directory_.find();
  if (!start) return start.error();
  {
    const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
    if (auto opened = writer_.open(std::move(start->manifest), std::nullopt, 0,
                                   persistence::AofWriter::Begin::kWithBase);
        !opened) {
      return opened;
    }
    parts_.journal.set_active(true);
  }
  rewrite_is_scheduled_ = true;
  log_notice("The append log is on; its base is being written");
  return {};
}

}  // namespace server
