// SPDX-License-Identifier: MIT
#include "server/replication/replica_controller.h"

#include <fmt/format.h>

#include <cassert>
#include <charconv>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "protocol/arguments.h"
#include "server/base/config/config.h"
#include "server/base/config/host.h"
#include "server/base/log/log.h"
#include "server/base/process/start_thread.h"
#include "server/base/process/waker.h"
#include "server/dispatch/pause_gate.h"
#include "server/replication/leader/leader.h"
#include "server/replication/replica/link_failures.h"
#include "server/replication/replica/replica_session.h"
#include "server/replication/stream/replication.h"

namespace server {
namespace {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

constexpr int64_t kIdleWaitMs = 60'000;

// Parses the value of the option `replicaof`, which is `host port`.
std::optional<ReplicaController::Target> parse_target(const std::string& text) {
  const size_t space = text.rfind(' ');
  if (space == std::string::npos) return std::nullopt;
  ReplicaController::Target target{text.substr(0, space), 0, false};
  (void)std::from_chars(text.data() + space + 1, text.data() + text.size(), target.port);
  return target;
}

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

ReplicaController::ReplicaController(const Parts& parts, Leader& leader, PauseGate& pause)
    : parts_(parts),
      leader_(leader),
      pause_(pause),
      failures_(std::make_unique<LinkFailures>()),
      waker_(std::make_unique<Waker>()) {
  target_ = parse_target(parts_.config.text(OptionId::kReplicaOf));
  if (target_) figures_.state = ReplicaLinkState::kConnect;
}

ReplicaController::~ReplicaController() {
  stop();
}

void ReplicaController::start(ReplayerFactory make_replayer) {
  make_replayer_ = std::move(make_replayer);
  if (const auto leader = target())
    log_notice("This server follows {}:{}", leader->host, leader->port);
  figures_.down_since_us = parts_.clock.monotonic_us();
  // A change of these options may repair a failing link.
  parts_.config.follow({OptionId::kMasterAuth, OptionId::kMasterUser, OptionId::kRdbForeignTypes,
                        OptionId::kReplTimeout},
                       [this] { retry_soon(); });
  thread_ = start_thread("replica", [this] { run(); });
}

void ReplicaController::stop() {
  is_stopping_ = true;
  waker_->wake();
  if (thread_.joinable()) thread_.join();
}

std::optional<ReplicaController::Target> ReplicaController::target() const {
  const std::scoped_lock lock(mutex_);
  return target_;
}

int64_t ReplicaController::silence_us() const {
  if (figures_.state != ReplicaLinkState::kConnected) return std::numeric_limits<int64_t>::max();
  return parts_.clock.monotonic_us() - figures_.last_received_us;
}

void ReplicaController::change_target(std::optional<Target> target) {
  {
    const std::scoped_lock lock(mutex_);
    target_ = std::move(target);
    ++generation_;
    failures_->forget();
    figures_.state = target_ ? ReplicaLinkState::kConnect : ReplicaLinkState::kNone;
    figures_.down_since_us = parts_.clock.monotonic_us();
    parts_.config.replace(OptionId::kReplicaOf,
                          target_ ? fmt::format("{} {}", target_->host, target_->port) : "");
  }
  waker_->wake();
}

void ReplicaController::give_up_unless(const std::optional<Target>& next) {
  {
    const std::scoped_lock lock(mutex_);
    if (target_ == next) return;
    given_up_ = generation_.load();
  }
  waker_->wake();
}

bool ReplicaController::follow(const Target& asked, Locking locking) {
  assert(parts_.replication.apply_mutex().is_held());
  const auto stripes =
      parts_.keyspace.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
  if (target() == asked) {
    retry_soon();
    return false;
  }
  parts_.replication.become_replica();
  change_target(asked);
  log_notice("This server follows {}:{} now", asked.host, asked.port);
  return true;
}

bool ReplicaController::promote(Locking locking) {
  assert(parts_.replication.apply_mutex().is_held());
  const auto stripes =
      parts_.keyspace.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
  if (!target()) return false;
  parts_.replication.become_leader();
  change_target(std::nullopt);
  log_notice("This server is a leader now");
  return true;
}

void ReplicaController::retry_soon() {
  failures_->reset_pause();
  waker_->wake();
}

void ReplicaController::run() {
  for (;;) {
    // The waker is drained before the flags are read. If a flag changes after this read, the next
    // wait ends at once.
    waker_->drain();
    if (is_stopping_) return;
    std::optional<Target> target;
    uint64_t generation = 0;
    {
      const std::scoped_lock lock(mutex_);
      target = target_;
      generation = generation_;
    }
    if (!target || !is_wanted(generation)) {
      waker_->wait(kIdleWaitMs);
      continue;
    }
    {
      // The session is destroyed before the pause, so that no connection and no file stay open.
      ReplicaSession session(parts_, {*waker_, figures_, *failures_, make_replayer_,
                                      [this, generation] { return is_wanted(generation); },
                                      [this, generation] { finish_failover(generation); }});
      const core::Error cause = session.run(*target);
      if (is_stopping_) return;
      end_session(cause, session, generation);
    }
    take_back(generation);
    if (is_wanted(generation)) waker_->wait(failures_->pause_ms());
  }
}

void ReplicaController::end_session(const core::Error& cause, const ReplicaSession& session,
                                    uint64_t generation) {
  const std::scoped_lock stream(parts_.replication.apply_mutex());
  const std::scoped_lock lock(mutex_);
  // After a promotion this server is a leader, so it has no link whose state must be updated.
  if (!target_) return;
  // A session cancelled by a role change does not count as a link failure.
  if (is_wanted(generation)) {
    const std::string line =
        failures_->record_end(cause, session.failure_kind(), parts_.clock.monotonic_us());
    if (!line.empty()) log_notice("{}", line);
  }
  if (session.was_up()) {
    // A link that reconnects without progress counts as down since its first failure.
    if (!failures_->is_repeating()) figures_.down_since_us = parts_.clock.monotonic_us();
  }
  figures_.state = ReplicaLinkState::kConnect;
  parts_.replication.set_link_up(false);
}

core::Result<> ReplicaController::begin_failover(const Failover::Request& request,
                                                 Locking locking) {
  Replication& replication = parts_.replication;
  uint64_t attempt = 0;
  {
    const auto stream = replication.hold(locking);
    auto begun = failover_.begin(request, replication.is_replica(), candidates_of(leader_),
                                 parts_.clock.monotonic_us());
    if (!begun) return begun;
    attempt = failover_.attempt();
    log_notice("FAILOVER: writes are held back until a replica has everything");
    pause_.hold_writes(PauseGate::Hold::kHandover);
  }
  pause_.drain([this, attempt] { record_writes_ended(attempt); });
  return {};
}

core::Result<> ReplicaController::take_over(std::string_view history, std::string_view address,
                                            Locking locking) {
  Replication& replication = parts_.replication;
  // The checks need the hold: before it, REPLICAOF may give this server another history.
  const auto stream = replication.hold(locking);
  if (!replication.is_replica()) {
    return core::Error{"ERR PSYNC FAILOVER can't be sent to a master."};
  }
  if (!protocol::equals_ignore_case(history, replication.ids().id)) {
    return core::Error{"ERR PSYNC FAILOVER replid must match my replid."};
  }
  log_notice("The leader hands its role over, by {}", address);
  promote(locking);
  return {};
}

void ReplicaController::record_writes_ended(uint64_t attempt) {
  {
    const std::scoped_lock lock(parts_.replication.apply_mutex());
    failover_.record_writes_ended(attempt);
  }
  leader_.request_acks();
  drive_failover();
}

void ReplicaController::end_failover() {
  failover_.end();
  pause_.release_writes(PauseGate::Hold::kHandover);
}

core::Result<> ReplicaController::abort_failover(Locking locking) {
  const auto stream = parts_.replication.hold(locking);
  const Failover::State state = failover_.state();
  if (state == Failover::State::kNone) return core::Error{"ERR No failover in progress."};
  log_notice("FAILOVER: aborted by a client");
  if (state == Failover::State::kInProgress) promote(locking);
  end_failover();
  return {};
}

void ReplicaController::drive_failover() {
  if (failover_.state() != Failover::State::kAwaitsSync) return;
  Replication& replication = parts_.replication;
  const std::scoped_lock stream(replication.apply_mutex());
  // Several threads may reach this check after an acknowledgement. Only one of them hands the role
  // over.
  if (failover_.state() != Failover::State::kAwaitsSync) return;
  // The stripe locks prevent deletions of expired keys from being added to the stream.
  // hold_stream() prevents the leader's thread from adding GETACK or PING.
  const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
  replication.hold_stream();
  const auto decision =
      failover_.decide(replication.offset(), candidates_of(leader_), parts_.clock.monotonic_us());
  if (decision.kind != Failover::Decision::Kind::kHandOver) {
    replication.release_stream();
    if (decision.kind == Failover::Decision::Kind::kWait) return;
    log_warning("FAILOVER: no replica had everything before the timeout");
    return end_failover();
  }
  log_notice("FAILOVER: the role goes to {}:{}", decision.target.host, decision.target.port);
  // INFO reports the failover as in progress only when it also reports the new role.
  replication.become_replica();
  failover_.hand_over();
  change_target(Target{decision.target.host, decision.target.port, true});
}

void ReplicaController::finish_failover(uint64_t generation) {
  const std::scoped_lock stream(parts_.replication.apply_mutex());
  // A session to the target of an earlier failover may still report that its target has accepted
  // the role. This report is ignored.
  if (failover_.state() != Failover::State::kInProgress || generation_ != generation) return;
  {
    const std::scoped_lock lock(mutex_);
    if (target_) target_->takes_over = false;
  }
  log_notice("FAILOVER: the target leads");
  end_failover();
}

void ReplicaController::take_back(uint64_t generation) {
  if (failover_.state() != Failover::State::kInProgress) return;
  const std::scoped_lock stream(parts_.replication.apply_mutex());
  if (failover_.state() != Failover::State::kInProgress || generation_ != generation) return;
  log_warning("FAILOVER: the target does not take the role, this server leads again");
  promote(Locking::kTake);
  end_failover();
}

}  // namespace server
