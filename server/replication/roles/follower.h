// SPDX-License-Identifier: MIT
//
// Follower: makes this server the replica of another one, and a leader again; its thread keeps the
// link to the leader.
//
//   REPLICAOF ─► follow() ─► thread: connect ─► FollowerSession ─► lost: again, soon
//   FAILOVER ─► begin_failover() ─► drive_failover(), often ─► follows its former replica
//
// Invariants: a change of role happens at once, under the replication's apply_mutex() and all
// stripes: before it everything came from the old leader, behind it nothing does.
// Thread safety: all members may be called from any thread, unless they say what they need.
// Source: docs/replication.md, "Following a leader".
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/keyspace/locking.h"
#include "core/result.h"
#include "server/process/ordered_mutex.h"
#include "server/replication/follower/follower_parts.h"
#include "server/session/replayer.h"

namespace core::keyspace {
class Keyspace;
}

namespace server {

class Failover;
class FollowerSession;
class LinkFailures;
class Leader;
class PauseGate;
class Waker;
enum class FailoverState : uint8_t;
struct FailoverRequest;

class Follower {
 public:
  using Parts = FollowerParts;
  using Target = FollowTarget;
  using Locking = core::keyspace::Locking;

  Follower(const Parts& parts, core::keyspace::Keyspace& keyspace, Leader& leader,
           PauseGate& pause);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Follows the leader that `replicaof` names, if any. After recovery.
  void start(ReplayerFactory make_replayer);
  // Ends the link and the thread.
  void stop();

  // REQUIRES for both: the replication's apply_mutex(). `locking` is for the stripes.
  // REPLICAOF. False when that leader is followed already.
  bool follow(const Target& target, Locking locking);
  // REPLICAOF NO ONE. False when this is no replica.
  bool promote(Locking locking);
  // The leader's address; nullopt on a leader.
  std::optional<Target> target() const;
  const FollowerFigures& figures() const { return figures_; }
  // For how long the leader has said nothing; forever while the link is down.
  int64_t silence_us() const;
  const LinkFailures& failures() const { return *failures_; }

  // FAILOVER, in follower_failover.cpp.
  FailoverState failover_state() const;
  bool is_failing_over() const;
  // Holds back all writes. Errors: the reply.
  core::Result<> begin_failover(const FailoverRequest& request, Locking locking);
  core::Result<> abort_failover(Locking locking);
  // PSYNC … FAILOVER: our leader, at `address`, has paused its writes and wants to follow us.
  // Errors: the reply; `history` is not the one followed so far.
  core::Result<> take_over(std::string_view history, std::string_view address, Locking locking);
  // Does what is due; to be called when a replica has acknowledged, and by the clock. Not by a
  // thread that holds stripes.
  void drive_failover();

 private:
  void run();
  // Every end of the link passes here.
  void end_session(const core::Error& cause, const FollowerSession& session, uint64_t generation);
  // Retries the link soon: the cause of its failure may be gone.
  void retry_soon();
  void change_target(std::optional<Target> target);
  void note_writes_ended(uint64_t attempt);
  // Ends the attempt and lets writes go on. REQUIRES: the replication's apply_mutex().
  void end_failover();
  // The target accepts, in a session for the target of that generation.
  void finish_failover(uint64_t generation);
  // The target refuses, or is lost.
  void take_back(uint64_t generation);

  const Parts parts_;
  core::keyspace::Keyspace& keyspace_;
  Leader& leader_;  // of this server's own replicas
  PauseGate& pause_;
  FollowerFigures figures_;
  const std::unique_ptr<LinkFailures> failures_;
  const std::unique_ptr<Failover> failover_;  // guarded by the replication's apply_mutex()
  const std::unique_ptr<Waker> waker_;
  ReplayerFactory make_replayer_;
  std::atomic<uint64_t> generation_{0};  // of the target
  std::atomic<bool> is_stopping_{false};
  mutable OrderedMutex mutex_{LockRank::kFollower};  // guards target_
  std::optional<Target> target_;
  std::thread thread_;
};

}  // namespace server
