// SPDX-License-Identifier: MIT
//
// Follower: makes this server the replica of another one, and a leader again; its thread keeps the
// link to the leader.
//
//   REPLICAOF ─► follow() ─► thread: connect ─► FollowerSession ─► lost: again, soon
//
// Invariants: a change of role happens at once, under the replication's apply_mutex() and all
// stripes: before it everything came from the old leader, behind it nothing does.
// Thread safety: all members may be called from any thread, unless they say what they need.
// Source: docs/replication.md, "Following a leader".
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/keyspace/keyspace.h"
#include "server/replication/follower_session.h"

namespace server {

class Follower {
 public:
  using Parts = FollowerSession::Parts;
  using Target = FollowerSession::Target;
  using Locking = core::keyspace::Locking;

  Follower(const Parts& parts, core::keyspace::Keyspace& keyspace);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Begins to follow what `replicaof` says, if anything. After recovery.
  void start(ReplayerFactory make_replayer);
  // Ends the link and the thread.
  void stop();

  // REPLICAOF. False when that leader is followed already. A thread that holds all stripes holds
  // the apply_mutex() too.
  bool follow(const Target& target, Locking locking);
  // REPLICAOF NO ONE. False when this is no replica.
  bool promote(Locking locking);
  // Whom it follows; nothing on a leader.
  std::optional<Target> target() const;
  const FollowerFigures& figures() const { return figures_; }

 private:
  void run();
  void end_session(const core::Error& reason, bool was_up);
  void change_target(std::optional<Target> target);

  const Parts parts_;
  core::keyspace::Keyspace& keyspace_;
  FollowerFigures figures_;
  Waker waker_;
  ReplayerFactory make_replayer_;
  std::atomic<uint64_t> generation_{0};  // of the target
  std::atomic<bool> is_stopping_{false};
  mutable std::mutex mutex_;  // guards target_
  std::optional<Target> target_;
  std::string last_reason_;  // of the thread
  std::thread thread_;
};

}  // namespace server
