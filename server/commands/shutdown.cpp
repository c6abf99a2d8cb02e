// SPDX-License-Identifier: MIT
#include "server/commands/shutdown.h"

#include <algorithm>

#include "server/log.h"
#include "server/replication/leader.h"

namespace server {

Shutdown::Request Shutdown::usual_request() const {
  return {.saves = !parts_.config.text(OptionId::kSave).empty()};
}

Shutdown::Outcome Shutdown::begin(const Request& request) {
  {
    std::unique_lock lock(mutex_);
    if (state_ == State::kEnding) return Outcome::kWaits;
    const bool is_first = state_ == State::kNone;
    if (!is_first && request.waits_for_replicas) return Outcome::kWaits;
    request_ = request;
    if (is_first) {
      ++attempt_;
      parts_.durability.refuse_children(true);
      parts_.pause.hold_writes(PauseGate::Hold::kShutdown);
    }
    const int64_t timeout_s = parts_.config.integer(OptionId::kShutdownTimeout);
    // A replica has nothing that its leader lacks.
    if (request.waits_for_replicas && timeout_s > 0 && !parts_.replication.is_replica() &&
        parts_.replication.leader().count() > 0) {
      log_notice("Waiting for replicas before shutting down");
      wanted_offset_.reset();
      deadline_us_ = parts_.clock.monotonic_us() + timeout_s * core::kSecondUs;
      state_ = State::kAwaitsReplicas;
      const uint64_t attempt = attempt_;
      lock.unlock();
      drain_writes([this, attempt] { note_writes_ended(attempt); });
      return Outcome::kWaits;
    }
    state_ = State::kEnding;
  }
  return finish();
}

core::Result<> Shutdown::abort() {
  {
    const std::scoped_lock lock(mutex_);
    if (state_ != State::kAwaitsReplicas) return core::Error{"ERR No shutdown in progress."};
    state_ = State::kNone;
  }
  log_notice("Shutdown is aborted");
  parts_.durability.refuse_children(false);
  parts_.pause.release_writes(PauseGate::Hold::kShutdown);
  return {};
}

void Shutdown::note_writes_ended(uint64_t attempt) {
  {
    const std::scoped_lock lock(mutex_);
    if (state_ != State::kAwaitsReplicas || attempt_ != attempt) return;
    wanted_offset_ = parts_.replication.offset();
  }
  parts_.replication.leader().request_acks();
  look();
}

void Shutdown::look() {
  if (state() != State::kAwaitsReplicas) return;
  {
    const std::scoped_lock lock(mutex_);
    if (state_ != State::kAwaitsReplicas || !is_waited_for_enough()) return;
    tell_of_replicas();
    state_ = State::kEnding;
  }
  (void)finish();  // who waits for it hears of a failure by attempt()
}

std::optional<int64_t> Shutdown::left_ms() const {
  if (state() != State::kAwaitsReplicas) return std::nullopt;
  return std::max<int64_t>(0, (deadline_us_ - parts_.clock.monotonic_us()) / 1000);
}

bool Shutdown::is_waited_for_enough() const {
  if (parts_.clock.monotonic_us() >= deadline_us_) return true;
  if (!wanted_offset_) return false;
  const auto replicas = parts_.replication.leader().describe();
  // No snapshot begins any more for those that need one first.
  return std::ranges::all_of(replicas, [this](const Leader::Description& replica) {
    return replica.state == Replica::State::kWaits || replica.acked >= *wanted_offset_;
  });
}

void Shutdown::tell_of_replicas() const {
  const uint64_t wanted = wanted_offset_.value_or(parts_.replication.offset());
  const auto replicas = parts_.replication.leader().describe();
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

Shutdown::Outcome Shutdown::finish() {
  Durability& durability = parts_.durability;
  if (!durability.availability.has(Availability::kLoading)) {
    if (auto ready = durability.prepare_end(request_.saves); !ready) {
      const bool is_hopeless = request_.is_signal && durability.append_log().fails();
      if (!request_.is_forced && !is_hopeless) {
        log_error("Can't shut down, what is in memory would be lost: {}", ready.error().message);
        parts_.durability.refuse_children(false);
        state_ = State::kNone;
        parts_.pause.release_writes(PauseGate::Hold::kShutdown);
        return Outcome::kFails;
      }
      log_warning("Shutting down all the same: {}", ready.error().message);
    }
  }
  end_process();
  return Outcome::kEnds;
}

}  // namespace server
