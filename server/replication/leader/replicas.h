// SPDX-License-Identifier: MIT
//
// Replicas: a leader's list of replicas and its decisions about them: when each gets a snapshot,
// when it gets the stream, and when it is too slow.
//
//   add() ──► kWaits ──begin()──► kSnapshot ──finish_snapshot()──► kFile, kAwaitsAck ──► kOnline
//   add_online() ────────────────────────────────────────────────────────────────────► kOnline
//
// Invariants: a snapshot is for replicas that take the same form of it. Times are monotonic and
// given by the caller.
// Thread safety: none; Leader guards it.
// Source: docs/replication.md, "The leader"; Redis 7.0.15 for the delays and timeouts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/replication/leader/replica_state.h"
#include "server/session/session.h"

namespace server {

// How a snapshot reaches a replica.
enum class SnapshotForm : uint8_t {
  kMarked,  // straight into the socket, its end told by a mark
  kFile,    // by way of a file, its length told first
};

struct Replica {
  using State = ReplicaState;

  ReplicaTraits traits;
  bool sends_acks = true;  // one that asked by SYNC may never do so
  State state = State::kWaits;
  SnapshotForm form = SnapshotForm::kMarked;  // of the one it gets
  bool has_loaded = false;                    // it acknowledged before the child's end was noticed
  int64_t since_us = 0;                       // in this state
  int64_t ack_us = 0;                         // when it was heard last
  uint64_t acked = 0;  // stream offsets that it has applied, and has on its disk
  uint64_t synced = 0;
};

// Replicas that one snapshot is for.
struct ReplicaBatch {
  std::vector<uint64_t> ids;  // of their sessions
  SnapshotForm form = SnapshotForm::kMarked;
  bool has_keys = true;
  // Somebody judges again what the stream says: the snapshot must hold nothing of what follows.
  bool is_exact = false;
};

class Replicas {
 public:
  using Id = uint64_t;  // of the session
  struct Policy {
    bool is_diskless = true;
    int64_t delay_s = 0;
    int64_t count_max = 0;  // with so many a diskless snapshot waits no longer; 0 is never
  };
  using Batch = ReplicaBatch;

  void add(Id id, const ReplicaTraits& traits, bool sends_acks, int64_t now_us);
  void add_online(Id id, const ReplicaTraits& traits, uint64_t offset, int64_t now_us);
  void remove(Id id) { replicas_.erase(id); }

  bool empty() const { return replicas_.empty(); }
  size_t size() const { return replicas_.size(); }
  const Replica* find(Id id) const;
  // In the order of their ids.
  const std::map<Id, Replica>& all() const { return replicas_; }

  // The snapshot to begin now; nothing when none is due.
  std::optional<Batch> due(const Policy& policy, int64_t now_us) const;
  // How long until one may be due; nothing when nobody waits.
  std::optional<int64_t> due_in_us(const Policy& policy, int64_t now_us) const;
  void begin(const Batch& batch, int64_t now_us);
  // The child has ended well: which of the batch are still there.
  std::vector<Id> finish_snapshot(const Batch& batch, int64_t now_us);
  void go_online(Id id, int64_t now_us);

  // True when the replica has come online by it.
  bool ack(Id id, uint64_t offset, std::optional<uint64_t> synced, int64_t now_us);
  // A sign of life without a figure.
  void heard(Id id, int64_t now_us);

  // Online replicas that have applied, or synced, the stream up to `offset`.
  int64_t count_acked(uint64_t offset) const;
  int64_t count_synced(uint64_t offset) const;
  int64_t count_good(int64_t lag_s_max, int64_t now_us) const;
  std::vector<Id> timed_out(int64_t timeout_s, int64_t now_us) const;
  // Who gets an empty line now, so that it does not take the wait for a broken link.
  std::vector<Id> keep_alive() const;

 private:
  static SnapshotForm form_for(const Replica& replica, const Policy& policy);
  static int64_t wait_us(const Replica& replica, const Policy& policy, int64_t now_us);

  std::map<Id, Replica> replicas_;
};

}  // namespace server
