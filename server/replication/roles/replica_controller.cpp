// SPDX-License-Identifier: MIT
#include "server/replication/roles/replica_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <limits>
#include <utility>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/start_thread.h"
#include "server/base/process/waker.h"
#include "server/replication/replica/link_failures.h"
#include "server/replication/replica/replica_session.h"
#include "server/replication/roles/failover.h"
#include "server/replication/stream/replication.h"

namespace server {
namespace {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

constexpr int64_t kForeverMs = 60'000;
// Options whose change may repair a failing link.
constexpr OptionId kOptionsOfTheLink[] = {OptionId::kMasterAuth, OptionId::kMasterUser,
                                          OptionId::kRdbForeignTypes, OptionId::kReplTimeout};

// Parses the value of the option `replicaof`, which is `host port`.
std::optional<ReplicaController::Target> parse_target(const std::string& text) {
  const size_t space = text.rfind(' ');
  if (space == std::string::npos) return std::nullopt;
  ReplicaController::Target target{text.substr(0, space), 0, false};
  (void)std::from_chars(text.data() + space + 1, text.data() + text.size(), target.port);
  return target;
}

}  // namespace

ReplicaController::ReplicaController(const Parts& parts, core::keyspace::Keyspace& keyspace,
                                     Leader& leader, PauseGate& pause)
    : parts_(parts),
      keyspace_(keyspace),
      leader_(leader),
      pause_(pause),
      failures_(std::make_unique<LinkFailures>()),
      failover_(std::make_unique<Failover>()),
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
  for (const OptionId option : kOptionsOfTheLink) {
    parts_.config.on_change(option, [this]() -> core::Result<> {
      retry_soon();
      return {};
    });
  }
  thread_ = start_thread("follower", [this] { run(); });
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
      keyspace_.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
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
      keyspace_.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
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
    // The waker must be drained before the flags that it signals are read.
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
      waker_->wait(kForeverMs);
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
  // After a promotion this server is a leader and has no state of a link.
  if (!target_) return;
  // A session cancelled by a role change does not count as a link failure.
  if (is_wanted(generation)) {
    const std::string line =
        failures_->record_end(cause.message, session.failure_kind(), parts_.clock.monotonic_us());
    if (!line.empty()) log_notice("{}", line);
  }
  if (session.was_up()) {
    // A link that reconnects without progress counts as down since its first failure.
    if (!failures_->is_repeating()) figures_.down_since_us = parts_.clock.monotonic_us();
  }
  figures_.state = ReplicaLinkState::kConnect;
  parts_.replication.set_link_up(false);
}

}  // namespace server
