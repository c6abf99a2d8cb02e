// SPDX-License-Identifier: MIT
//
// Replicas: a leader's list of replicas. Decides when each gets a snapshot, when it gets the
// stream, and when it is too slow.
//
//   add() ──► kWaits ──begin()──► kSnapshot ──finish_snapshot()──► kFile, kAwaitsAck ──► kOnline
//   add_online() ────────────────────────────────────────────────────────────────────► kOnline
//
// Invariants: all replicas that receive a snapshot accept its SnapshotForm. Times are monotonic and
// given by the caller.
// Thread safety: one thread at a time may use an object. Leader's mutex guards it.
// Source: docs/replication.md, "The leader"; Redis 7.0.15 for the delays and timeouts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/replication/leader/replica_state.h"
#include "server/session/session.h"

namespace server {

// The way in which a snapshot reaches a replica.
enum class SnapshotForm : uint8_t {
  kMarked,  // a child process writes the snapshot to the socket, followed by an end mark
  kFile,    // a child process writes a file; the leader sends the file's size, then the file
};

struct Replica {
  using State = ReplicaState;

  ReplicaTraits traits;
  bool sends_acks = true;  // false for a replica that sent SYNC: it need not send acknowledgements
  State state = State::kWaits;
  SnapshotForm form = SnapshotForm::kMarked;  // form of the snapshot that the replica receives

  // True once the replica has acknowledged its snapshot, which may happen before the leader notices
  // the end of the child process that wrote it. A replica that continues the stream needs none.
  bool has_loaded = false;
  int64_t since_us = 0;  // time at which the replica's present state began
  int64_t ack_us = 0;    // time of the replica's last acknowledgement or keepalive

  // `acked`: the offset up to which the replica has applied the stream. `synced`: the offset up to
  // which the stream is on the replica's disk.
  uint64_t acked = 0;
  uint64_t synced = 0;
  bool log_works = true;  // false if the last acknowledgement reports that the append log fails
};

// The replicas that receive the same snapshot.
struct ReplicaBatch {
  std::vector<uint64_t> ids;  // ids of the replicas' sessions
  SnapshotForm form = SnapshotForm::kMarked;
  bool has_keys = true;
  // True for replicas that re-execute the commands of the stream. Their snapshot must be exact: it
  // must contain no bits of later writes.
  bool is_exact = false;
};

class Replicas {
 public:
  using Id = uint64_t;  // id of the replica's session
  struct Policy {
    bool is_diskless = true;
    int64_t delay_s = 0;
    // If this many replicas wait, a diskless snapshot starts before the delay has passed. If 0, the
    // number of waiting replicas has no effect.
    int64_t count_max = 0;
  };
  using Batch = ReplicaBatch;

  void add(Id id, const ReplicaTraits& traits, bool sends_acks, int64_t now_us);
  void add_online(Id id, const ReplicaTraits& traits, uint64_t offset, int64_t now_us);
  void remove(Id id) { replicas_.erase(id); }

  bool empty() const { return replicas_.empty(); }
  size_t size() const { return replicas_.size(); }
  const Replica* find(Id id) const;
  // Returns whether a replica of the batch is still connected.
  bool has_any(const Batch& batch) const;
  // Returns the replicas, sorted by id.
  const std::map<Id, Replica>& all() const { return replicas_; }

  // Returns the snapshot to start now, or nullopt if none is due.
  std::optional<Batch> due(const Policy& policy, int64_t now_us) const;
  void begin(const Batch& batch, int64_t now_us);
  // Called when the child process has written the whole snapshot. Returns the replicas of the batch
  // that are still connected.
  std::vector<Id> finish_snapshot(const Batch& batch, int64_t now_us);
  void go_online(Id id, int64_t now_us);

  // Records the acknowledgement. Returns true if it has brought the replica online.
  bool ack(Id id, const ReplicaAck& ack, int64_t now_us);
  // Records a keepalive, which has no offset. It counts while the replica loads its snapshot. After
  // that only acknowledgements prove that the replica applies the stream.
  void heard(Id id, int64_t now_us);

  // Returns how many online replicas have applied the stream up to `offset`. count_synced() counts
  // the replicas whose append log is synced up to `offset`.
  int64_t count_acked(uint64_t offset) const;
  int64_t count_synced(uint64_t offset) const;
  int64_t count_good(int64_t lag_s_max, int64_t now_us) const;
  std::vector<Id> timed_out(int64_t timeout_s, int64_t now_us) const;
  // Returns the replicas that need an empty line now, so that they do not time out.
  std::vector<Id> keep_alive() const;

 private:
  static SnapshotForm form_for(const Replica& replica, const Policy& policy);
  static bool has_waited(const Replica& replica, const Policy& policy, int64_t now_us);

  std::map<Id, Replica> replicas_;
};

}  // namespace server
