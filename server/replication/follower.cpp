// SPDX-License-Identifier: MIT
#include "server/replication/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "server/log.h"

namespace server {
namespace {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

// After a link that worked the leader is asked again at once, then more and more slowly.
constexpr int64_t kFirstPauseMs = 20;
constexpr int64_t kLongestPauseMs = 1000;
constexpr int64_t kForeverMs = 60'000;

// `host port`, as the option holds it.
std::optional<Follower::Target> parse_target(const std::string& text) {
  const size_t space = text.rfind(' ');
  if (space == std::string::npos) return std::nullopt;
  Follower::Target target{text.substr(0, space), 0, false};
  (void)std::from_chars(text.data() + space + 1, text.data() + text.size(), target.port);
  return target;
}

}  // namespace

Follower::Follower(const Parts& parts, core::keyspace::Keyspace& keyspace)
    : parts_(parts), keyspace_(keyspace) {
  target_ = parse_target(parts_.config.text(OptionId::kReplicaOf));
  if (target_) figures_.state = FollowerState::kConnect;
}

Follower::~Follower() {
  stop();
}

void Follower::start(ReplayerFactory make_replayer) {
  make_replayer_ = std::move(make_replayer);
  figures_.down_since_us = parts_.clock.monotonic_us();
  thread_ = std::thread([this] { run(); });
}

void Follower::stop() {
  is_stopping_ = true;
  ++generation_;
  waker_.wake();
  if (thread_.joinable()) thread_.join();
}

std::optional<Follower::Target> Follower::target() const {
  const std::scoped_lock lock(mutex_);
  return target_;
}

void Follower::change_target(std::optional<Target> target) {
  {
    const std::scoped_lock lock(mutex_);
    target_ = std::move(target);
    ++generation_;
    figures_.state = target_ ? FollowerState::kConnect : FollowerState::kNone;
    figures_.down_since_us = parts_.clock.monotonic_us();
    parts_.config.replace(OptionId::kReplicaOf,
                          target_ ? fmt::format("{} {}", target_->host, target_->port) : "");
  }
  waker_.wake();
}

bool Follower::follow(const Target& asked, Locking locking) {
  const std::scoped_lock stream(parts_.replication.apply_mutex());
  const auto stripes =
      keyspace_.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
  if (target() == asked) return false;
  parts_.replication.become_replica();
  change_target(asked);
  log_notice("This server follows {}:{} now", asked.host, asked.port);
  return true;
}

bool Follower::promote(Locking locking) {
  const std::scoped_lock stream(parts_.replication.apply_mutex());
  const auto stripes =
      keyspace_.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
  if (!target()) return false;
  parts_.replication.become_leader();
  change_target(std::nullopt);
  log_notice("This server is a leader now");
  return true;
}

void Follower::run() {
  int64_t pause_ms = kFirstPauseMs;
  while (!is_stopping_) {
    waker_.wait(0);
    std::optional<Target> target;
    uint64_t generation = 0;
    {
      const std::scoped_lock lock(mutex_);
      target = target_;
      generation = generation_;
    }
    if (!target) {
      waker_.wait(kForeverMs);
      continue;
    }
    FollowerSession session(parts_, {waker_, figures_, make_replayer_,
                                     [this, generation] { return generation_ == generation; },
                                     [this] { finish_failover(); }});
    const core::Error reason = session.run(*target);
    if (is_stopping_) return;
    end_session(reason, session.was_up());
    take_back(generation);
    if (generation_ != generation) continue;
    if (session.was_up()) pause_ms = kFirstPauseMs;
    waker_.wait(pause_ms);
    pause_ms = std::min(pause_ms * 2, kLongestPauseMs);
  }
}

void Follower::end_session(const core::Error& reason, bool was_up) {
  if (was_up || reason.message != last_reason_) {
    log_notice("The link to the leader is down: {}", reason.message);
  }
  last_reason_ = reason.message;
  const std::scoped_lock stream(parts_.replication.apply_mutex());
  const std::scoped_lock lock(mutex_);
  // A leader has none of this.
  if (!target_) return;
  if (was_up) {
    target_->takes_over = false;
    figures_.down_since_us = parts_.clock.monotonic_us();
  }
  figures_.state = FollowerState::kConnect;
  parts_.replication.set_link_up(false);
}

}  // namespace server
