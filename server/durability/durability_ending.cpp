// SPDX-License-Identifier: MIT
//
// The part of Durability that brings everything to the disk before the process ends.
#include <fmt/format.h>
#include <unistd.h>

#include "server/durability/durability.h"
#include "server/durability/file_names.h"
#include "server/process/log.h"

namespace server {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

bool Durability::claim_from_child(const std::function<bool()>& spares) {
  constexpr useconds_t kPauseUs = 1000;
  while (!claim(Task::kSave)) {
    if (recovery_is_cancelled_) return false;
    {
      const std::scoped_lock lock(mutex_);
      if (child_ != nullptr && !spares()) child_->kill();
    }
    poll_child();
    ::usleep(kPauseUs);
  }
  return true;
}

core::Result<> Durability::prepare_end(bool saves) {
  refuse_children(true);
  // Its end is nearer than that of another one which would begin now.
  const auto writes_first_base = [this] { return task_ == Task::kRewrite && writer_.needs_base(); };
  {
    const std::scoped_lock lock(mutex_);
    if (child_ == nullptr) {
    } else if (writes_first_base()) {
      log_notice("The append log's first base is being written. Waiting for it");
    } else if (task_ == Task::kTransfer) {
      // Replicas will ask again; a save was ordered.
      log_notice("A snapshot for replicas is on its way. Ending it");
    } else {
      log_warning("There is a child saving. Killing it!");
    }
  }
  // The claim is kept: nothing that saves begins any more.
  if (!claim_from_child(writes_first_base)) return {};
  auto ready = complete_log();
  if (ready) ready = append_log_.flush();
  if (ready && saves) ready = save_claimed(Locking::kTake);
  if (!ready) release();
  return ready;
}

// Until a log has its base a start finds what was there before, and after a failed sync perhaps
// less than that.
core::Result<> Durability::complete_log() {
  if (!wants_log_) return {};
  {
    const std::scoped_lock one_at_a_time(log_switch_mutex_);
    if (!writer_.is_open()) {
      if (auto opened = open_log(); !opened) return opened;
    }
  }
  if (!writer_.needs_base() && !writer_.has_lost_sync()) return {};
  log_notice("The append log lacks a base. Writing it");
  return rewrite_here();
}

// A rewrite without a child. REQUIRES: the task is claimed.
core::Result<> Durability::rewrite_here() {
  if (auto ready = writer_.prepare_rotation(); !ready) return ready;
  const auto format = wanted_base_format();
  {
    const auto stream = hold_stream(Locking::kTake);
    const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
    if (auto rotated = writer_.rotate(); !rotated) return rotated;
    auto written = write_base(format, temporary_base(), write_options(true));
    if (!written) return written.error();
  }
  auto replaced = writer_.replace_base(temporary_base(), format);
  if (replaced) files_are_stale_ = false;
  return replaced;
}

core::Result<> Durability::finish() {
  stop();
  auto flushed = append_log_.flush();
  if (flushed) return {};
  return core::Error{fmt::format("{} bytes of the append log are not on the disk: {}",
                                 log_end() - writer_.synced_offset(),
                                 core::without_code(flushed.error().message))};
}

}  // namespace server
