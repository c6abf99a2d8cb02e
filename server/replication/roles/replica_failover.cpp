// SPDX-License-Identifier: MIT
//
// The part of ReplicaController that executes FAILOVER, as Failover decides.
#include <mutex>
#include <vector>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "protocol/arguments.h"
#include "server/base/config/host.h"
#include "server/base/log/log.h"
#include "server/dispatch/pause_gate.h"
#include "server/replication/leader/leader.h"
#include "server/replication/roles/failover.h"
#include "server/replication/roles/replica_controller.h"
#include "server/replication/stream/replication.h"

namespace server {
namespace {

std::vector<Failover::Candidate> candidates_of(const Leader& leader) {
  std::vector<Failover::Candidate> candidates;
  for (const auto& replica : leader.describe()) {
    // Replicas without a reachable address (a unix socket, no port) cannot take over.
    if (replica.port == 0 || !is_host(replica.address)) continue;
    candidates.push_back(
        {{replica.address, replica.port}, replica.state == ReplicaState::kOnline, replica.acked});
  }
  return candidates;
}

}  // namespace

core::Result<> ReplicaController::begin_failover(const FailoverRequest& request, Locking locking) {
  Replication& replication = parts_.replication;
  uint64_t attempt = 0;
  {
    const auto stream = replication.hold(locking);
    auto begun = failover_->begin(request, replication.is_replica(), candidates_of(leader_),
                                  parts_.clock.monotonic_us());
    if (!begun) return begun;
    attempt = failover_->attempt();
    log_notice("FAILOVER: writes are held back until a replica has everything");
    pause_.hold_writes(PauseGate::Hold::kHandover);
  }
  pause_.drain([this, attempt] { record_writes_ended(attempt); });
  return {};
}

FailoverState ReplicaController::failover_state() const {
  return failover_->state();
}

bool ReplicaController::is_failing_over() const {
  return failover_->state() != FailoverState::kNone;
}

core::Result<> ReplicaController::take_over(std::string_view history, std::string_view address,
                                            Locking locking) {
  Replication& replication = parts_.replication;
  if (!replication.is_replica()) {
    return core::Error{"ERR PSYNC FAILOVER can't be sent to a master."};
  }
  if (!protocol::equals_ignore_case(history, replication.ids().id)) {
    return core::Error{"ERR PSYNC FAILOVER replid must match my replid."};
  }
  log_notice("The leader hands its role over, by {}", address);
  const auto stream = replication.hold(locking);
  promote(locking);
  return {};
}

void ReplicaController::record_writes_ended(uint64_t attempt) {
  {
    const std::scoped_lock lock(parts_.replication.apply_mutex());
    failover_->record_writes_ended(attempt);
  }
  leader_.request_acks();
  drive_failover();
}

void ReplicaController::end_failover() {
  failover_->end();
  pause_.release_writes(PauseGate::Hold::kHandover);
}

core::Result<> ReplicaController::abort_failover(Locking locking) {
  const auto stream = parts_.replication.hold(locking);
  const Failover::State state = failover_->state();
  if (state == Failover::State::kNone) return core::Error{"ERR No failover in progress."};
  log_notice("FAILOVER: aborted by a client");
  if (state == Failover::State::kInProgress) promote(locking);
  end_failover();
  return {};
}

void ReplicaController::drive_failover() {
  if (failover_->state() != Failover::State::kAwaitsSync) return;
  Replication& replication = parts_.replication;
  const std::scoped_lock stream(replication.apply_mutex());
  // Several threads may reach this check after an acknowledgement. Only one of them hands the role
  // over.
  if (failover_->state() != Failover::State::kAwaitsSync) return;
  // The stripe locks prevent deletions of expired keys from being added to the stream.
  // hold_stream() prevents the leader's thread from adding GETACK or PING.
  const auto stripes =
      keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kShared);
  replication.hold_stream();
  const auto decision =
      failover_->decide(replication.offset(), candidates_of(leader_), parts_.clock.monotonic_us());
  switch (decision.kind) {
    case Failover::Decision::Kind::kWait:
      return replication.release_stream();
    case Failover::Decision::Kind::kGiveUp:
      replication.release_stream();
      log_warning("FAILOVER: no replica had everything before the timeout");
      return end_failover();
    case Failover::Decision::Kind::kHandOver:
      log_notice("FAILOVER: the role goes to {}:{}", decision.target.host, decision.target.port);
      failover_->hand_over();
      replication.become_replica();
      return change_target(Target{decision.target.host, decision.target.port, true});
  }
}

void ReplicaController::finish_failover(uint64_t generation) {
  const std::scoped_lock stream(parts_.replication.apply_mutex());
  // A session to the target of an earlier failover may still report that its target has accepted
  // the role. This report is ignored.
  if (failover_->state() != Failover::State::kInProgress || generation_ != generation) return;
  {
    const std::scoped_lock lock(mutex_);
    if (target_) target_->takes_over = false;
  }
  log_notice("FAILOVER: the target leads");
  end_failover();
}

void ReplicaController::take_back(uint64_t generation) {
  if (failover_->state() != Failover::State::kInProgress) return;
  const std::scoped_lock stream(parts_.replication.apply_mutex());
  if (failover_->state() != Failover::State::kInProgress || generation_ != generation) return;
  log_warning("FAILOVER: the target does not take the role, this server leads again");
  promote(Locking::kTake);
  end_failover();
}

}  // namespace server
