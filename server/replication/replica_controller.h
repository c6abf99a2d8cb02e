// SPDX-License-Identifier: MIT
//
// ReplicaController: makes this server a replica of another one, or a leader again. Its thread
// maintains the link to the leader.
//
//   REPLICAOF ─► follow() ─► thread: connect ─► ReplicaSession ─► link lost: retry soon
//   FAILOVER ─► begin_failover() ─► drive_failover(), repeatedly ─► follows its former replica
//
// Invariants: a role change is atomic, under the replication's apply_mutex() and all stripe locks.
// All changes that come from the old leader precede the role change.
// Thread safety: all members may be called from any thread, unless their comments restrict it.
// Source: docs/replication.md, "Following a leader".
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "core/keyspace/locking.h"
#include "core/result.h"
#include "server/base/process/ordered_mutex.h"
#include "server/replication/failover.h"
#include "server/replication/replica/replica_parts.h"
#include "server/session/replayer.h"

namespace server {

class ReplicaSession;
class LinkFailures;
class Leader;
class PauseGate;
class Waker;

class ReplicaController {
 public:
  using Parts = ReplicaParts;
  using Target = FollowTarget;
  using Locking = core::keyspace::Locking;

  ReplicaController(const Parts& parts, Leader& leader, PauseGate& pause);
  ~ReplicaController();
  ReplicaController(const ReplicaController&) = delete;
  ReplicaController& operator=(const ReplicaController&) = delete;

  // Follows the leader named by `replicaof`, if any. Must be called after recovery.
  void start(ReplayerFactory make_replayer);
  // Closes the link and ends the thread.
  void stop();

  // Implements REPLICAOF. Returns false if this server follows `target` already. `locking` says
  // which stripes the caller has locked. REQUIRES, also for promote(): the replication's
  // apply_mutex() is held.
  bool follow(const Target& target, Locking locking);
  // Implements REPLICAOF NO ONE. Returns false if this server is a leader already.
  bool promote(Locking locking);
  // Announces a change of the role. `next` is the next leader; nullopt if this server will lead. If
  // this server does not follow `next` already, its session with the present leader ends soon. That
  // session ends even while it loads a snapshot under the replication's apply_mutex(). Must be
  // followed by follow() or promote().
  // REQUIRES: the caller holds no lock.
  void give_up_unless(const std::optional<Target>& next);
  // Returns the leader's address; nullopt on a leader.
  std::optional<Target> target() const;
  const ReplicaFigures& figures() const { return figures_; }
  // Returns how long the leader has sent nothing; the maximum of int64_t while the link is down.
  int64_t silence_us() const;
  const LinkFailures& failures() const { return *failures_; }

  Failover::State failover_state() const { return failover_.state(); }
  bool is_failing_over() const { return failover_state() != Failover::State::kNone; }
  // Starts a failover and holds back all writes. Errors: the reply to the client.
  core::Result<> begin_failover(const Failover::Request& request, Locking locking);
  core::Result<> abort_failover(Locking locking);
  // Implements PSYNC … FAILOVER: the leader at `address` has paused its writes and asks to follow
  // this server. Errors: the error reply, for example if `history` is not the id of the history
  // that this replica has followed.
  core::Result<> take_over(std::string_view history, std::string_view address, Locking locking);
  // Executes the due steps of a failover. Must be called when a replica has acknowledged, and
  // periodically. REQUIRES: no stripe lock is held.
  void drive_failover();

 private:
  void run();
  // Called whenever a session with a leader has ended.
  void end_session(const core::Error& cause, const ReplicaSession& session, uint64_t generation);
  // Shortens the delay before the next attempt to connect to the leader. Called when the cause of
  // the failure may have been removed.
  void retry_soon();
  void change_target(std::optional<Target> target);
  bool is_wanted(uint64_t generation) const {
    return !is_stopping_ && generation_ == generation && given_up_ != generation;
  }
  void record_writes_ended(uint64_t attempt);
  // Ends the failover and resumes writes. REQUIRES: the replication's apply_mutex() is held.
  void end_failover();
  // Called when the target of the failover has accepted the role of the leader. `generation` is the
  // value that generation_ had when the session with the target started.
  void finish_failover(uint64_t generation);
  // Called when the target of the failover has rejected the request, or the link to the target is
  // lost. This server leads again.
  void take_back(uint64_t generation);

  const Parts parts_;
  Leader& leader_;  // sends the stream to this server's own replicas
  PauseGate& pause_;
  ReplicaFigures figures_;
  const std::unique_ptr<LinkFailures> failures_;
  // State of FAILOVER; guarded by the replication's apply_mutex().
  Failover failover_;
  const std::unique_ptr<Waker> waker_;
  ReplayerFactory make_replayer_;
  std::atomic<uint64_t> generation_{0};  // number that is incremented when the target changes
  static constexpr uint64_t kNoGeneration = ~uint64_t{0};
  std::atomic<uint64_t> given_up_{kNoGeneration};  // generation of the session that must end
  std::atomic<bool> is_stopping_{false};
  mutable OrderedMutex mutex_{LockRank::kReplicaController};  // this mutex guards target_
  std::optional<Target> target_;
  std::thread thread_;
};

}  // namespace server
