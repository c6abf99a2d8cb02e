// SPDX-License-Identifier: MIT
#include "server/replication/shutdown.h"

#include <algorithm>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/availability.h"
#include "server/dispatch/pause_gate.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "server/replication/leader/leader.h"
#include "server/replication/stream/replication.h"

namespace server {

FinalSave Shutdown::usual_save() const {
  const bool has_save_points = !parts_.config.text(OptionId::kSave).empty();
  return has_save_points ? FinalSave::kBySavePoints : FinalSave::kNone;
}

Shutdown::Request Shutdown::signal_request(int64_t words) const {
  enum Bit : int64_t { kSave = 1, kNoSave = 2, kNow = 4, kForce = 8 };
  Request request;
  if ((words & kSave) != 0) request.save = FinalSave::kRequired;
  if ((words & kNoSave) != 0) request.save = FinalSave::kNone;
  request.is_forced = (words & kForce) != 0;
  request.waits_for_replicas = (words & kNow) == 0;
  request.is_signal = true;
  return request;
}

void Shutdown::begin(const Request& request) {
  std::unique_lock lock(mutex_);
  const bool is_first = state_ == State::kNone;
  if (state_ == State::kEnding || (!is_first && request.waits_for_replicas)) return;
  if (is_first) {
    request_ = request;
  } else {
    if (request.save) request_.save = request.save;
    request_.is_forced |= request.is_forced;
    request_.is_signal |= request.is_signal;
  }
  deadline_us_ = request.waits_for_replicas ? replicas_deadline_us() : 0;
  if (!is_first) {
    lock.unlock();
    return look();
  }
  if (deadline_us_ != 0) log_notice("Waiting for replicas before shutting down");
  wanted_offset_.reset();
  state_ = State::kWaits;
  const uint64_t attempt = ++attempt_;
  parts_.durability.saves.slot.refuse_children(true);
  parts_.pause.hold_writes(PauseGate::Hold::kShutdown);
  lock.unlock();
  parts_.pause.drain([this, attempt] { record_writes_ended(attempt); });
}

int64_t Shutdown::replicas_deadline_us() const {
  const int64_t timeout_s = parts_.config.integer(OptionId::kShutdownTimeout);
  // A replica does not wait for its sub-replicas, because its leader has all its data.
  const bool has_no_replicas = parts_.replication.is_replica() || parts_.leader.count() == 0;
  if (timeout_s == 0 || has_no_replicas) return 0;
  return parts_.clock.monotonic_us() + timeout_s * core::kSecondUs;
}

core::Result<> Shutdown::abort() {
  const std::scoped_lock lock(mutex_);
  if (state_ != State::kWaits) return core::Error{std::string(kNoShutdown)};
  log_notice("Shutdown is aborted");
  take_back();
  return {};
}

void Shutdown::record_writes_ended(uint64_t attempt) {
  {
    const std::scoped_lock lock(mutex_);
    if (state_ != State::kWaits || attempt_ != attempt) return;
    wanted_offset_ = parts_.replication.offset();
  }
  if (deadline_us_ != 0) parts_.leader.request_acks();
  look();
}

void Shutdown::look() {
  if (state() != State::kWaits) return;
  {
    const std::scoped_lock lock(mutex_);
    if (state_ != State::kWaits || !wait_is_over()) return;
    if (deadline_us_ != 0) log_lagging_replicas();
    parts_.pause.hold_writes(PauseGate::Hold::kEnding);
    state_ = State::kEnding;
  }
  finish();
}

std::optional<int64_t> Shutdown::left_ms() const {
  const int64_t deadline_us = deadline_us_;
  if (state() != State::kWaits || deadline_us == 0) return std::nullopt;
  return std::max<int64_t>(0, (deadline_us - parts_.clock.monotonic_us()) / 1000);
}

bool Shutdown::wait_is_over() const {
  // The offset that replicas must reach is unknown until all writes have ended. If the wait ended
  // earlier, a running write could be acknowledged but not saved.
  if (!wanted_offset_) return false;
  if (deadline_us_ == 0 || parts_.clock.monotonic_us() >= deadline_us_) return true;
  const auto replicas = parts_.leader.describe();
  // The server does not wait for replicas whose snapshot has not started, because no snapshot
  // starts during a shutdown.
  return std::ranges::all_of(replicas, [this](const Leader::Description& replica) {
    return replica.state == ReplicaState::kWaits || replica.acked >= *wanted_offset_;
  });
}

void Shutdown::log_lagging_replicas() const {
  const uint64_t wanted = wanted_offset_.value_or(parts_.replication.offset());
  const auto replicas = parts_.leader.describe();
  size_t in_sync = 0;
  for (const Leader::Description& replica : replicas) {
    if (replica.acked >= wanted) {
      ++in_sync;
      continue;
    }
    log_warning("Lagging replica {}:{} lacks {} bytes of the stream, lag={}", replica.address,
                replica.port, wanted - replica.acked, replica.lag_s);
  }
  log_notice("{} of {} replicas are in sync when shutting down", in_sync, replicas.size());
}

// The state is reset last, so that no new attempt starts while writes are still held back.
void Shutdown::take_back() {
  parts_.durability.saves.slot.refuse_children(false);
  parts_.pause.release_writes(PauseGate::Hold::kEnding);
  parts_.pause.release_writes(PauseGate::Hold::kShutdown);
  state_ = State::kNone;
}

void Shutdown::finish() {
  Durability& durability = parts_.durability;
  if (!durability.availability.has(Availability::kLoading)) {
    if (auto ready = durability.prepare_end(request_.save.value_or(usual_save())); !ready) {
      const bool is_hopeless = request_.is_signal && durability.append_log.fails();
      if (!request_.is_forced && !is_hopeless) {
        const bool is_only_snapshot = durability.log_holds_everything();
        // The line is logged last, because its reader may ask for another shutdown at once.
        take_back();
        return log_error("Can't shut down, {}: {}",
                         is_only_snapshot ? "the snapshot that was asked for is missing"
                                          : "the data in memory would be lost",
                         ready.error().message);
      }
      log_warning("Shutting down all the same: {}", ready.error().message);
    }
  }
  parts_.process.end();
}

}  // namespace server
