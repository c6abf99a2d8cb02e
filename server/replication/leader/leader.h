// SPDX-License-Identifier: MIT
//
// Leader: serves the stream to replicas, on a thread of its own.
//
//   connection (I/O thread) ──attach(), ack(), detach()──► Leader ──► socket
//                                                            ▲
//                                        Backlog, snapshot ──┘
//
// A replica's connection continues to read on its I/O thread, but writes nothing once its PSYNC was
// accepted. All bytes to the replica are sent by the leader's thread, or by the child process that
// writes a snapshot to the replica's socket.
//
// Invariants: a replica that cannot get every byte of the stream is disconnected. So is a foreign
// replica that cannot hold the keys that the stream creates. Memory for slow replicas is part of
// the backlog, bounded by client-output-buffer-limit. A replica serves sub-replicas the same way,
// but adds nothing to the stream.
// Thread safety: any thread may call the public members.
// Source: docs/replication.md, "The leader".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/result.h"
#include "server/base/process/ordered_mutex.h"
#include "server/replication/leader/replica_state.h"
#include "server/replication/stream/replication_parts.h"

namespace persistence {
struct RdbReplicationInfo;
}

namespace server {

class Backlog;
class Client;
class ForeignReplicas;
class PauseGate;
class ReplicaSender;
class Replicas;
class Replication;
class StreamPump;
struct PumpOutcome;
struct ReplicaBatch;
struct ReplicaSnapshot;
struct ReplicaTraits;
struct StreamFlow;

// AckListener: is notified after each acknowledgement from a replica. The notification is sent on
// the I/O thread of that replica's connection.
class AckListener {
 public:
  virtual void on_ack() = 0;

 protected:
  ~AckListener() = default;
};

class Leader {
 public:
  // The arguments of PSYNC. A SYNC command requests a full sync.
  struct Request {
    std::string_view id = "?";
    int64_t offset = -1;  // offset of the first byte that the replica lacks; PSYNC counts from 1
    bool is_sync = false;
    // Makes this server the leader, for a leader that hands its role over; empty for others. Called
    // after all checks: if this server refused its former leader after that, both would lead.
    std::function<core::Result<>()> take_over = {};
  };
  struct Counters {
    std::atomic<uint64_t> full_syncs{0};
    std::atomic<uint64_t> partial_syncs{0};
    std::atomic<uint64_t> refused_partial_syncs{0};
    std::atomic<uint64_t> output_bytes{0};
  };
  // The fields of one replica in INFO and ROLE.
  struct Description {
    std::string address;
    uint16_t port = 0;
    std::string node_id;  // id of the replica's node; empty outside a cluster
    ReplicaState state = ReplicaState::kWaits;
    uint64_t acked = 0;
    int64_t lag_s = 0;
    bool log_works = true;
  };

  Leader(const ReplicationParts& parts, Replication& replication, const PauseGate& pause,
         AckListener& ack_listener);
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  void start();
  void stop();

  // Turns the client's connection into the connection of a replica. Errors: the reply to the
  // client. After an error the connection is unchanged.
  core::Result<> attach(const std::shared_ptr<Client>& client, const ReplicaTraits& traits,
                        const Request& request);
  // Called when the connection of a replica has ended.
  void detach(uint64_t client_id);
  void ack(uint64_t client_id, ReplicaAck ack);
  // Closes the connections of all replicas, because the stream was replaced.
  void on_stream_replaced();

  // Returns how many replicas have acknowledged `offset`, for WAIT and WAITAOF.
  int64_t count_acked(uint64_t offset) const;
  int64_t count_synced(uint64_t offset) const;
  // Wakes the leader's thread, which then requests an acknowledgement from all replicas.
  void request_acks();
  // Adds GETACK to the stream, and returns the stream's end. A replica that has acknowledged this
  // end may take over, and this server can then continue the replica's stream. While
  // PauseGate::Hold::kResigning is set, nothing follows GETACK; otherwise GETACK is not added.
  // REQUIRES: no write is running.
  uint64_t end_stream();

  // Rejects writes while there are fewer good replicas than min-replicas-to-write, and accepts them
  // otherwise.
  void update_write_gate();

  const Counters& counters() const { return counters_; }
  void reset_counters();
  size_t count() const;
  int64_t count_good() const;
  std::vector<Description> describe() const;

 private:
  using LinkPtr = std::shared_ptr<ReplicaSender>;
  // Monotonic times of periodic work. 0 means that the work was never done.
  struct Times {
    int64_t next_snapshot_us = 0;
    int64_t next_second_us = 0;
    int64_t last_ping_us = 0;
    int64_t last_replica_us = 0;
  };

  void run();
  // Does one iteration of the thread's work, except sending. Returns the connections to which this
  // process may send. For each connection, the result also states whether the replica gets the
  // stream yet.
  std::vector<StreamFlow> step();
  void finish(const PumpOutcome& outcome);

  // These functions require that the caller holds mutex_.
  bool try_partial(const LinkPtr& link, const ReplicaTraits& traits, const Request& request,
                   int64_t now_us);
  void drop(uint64_t id, std::string_view reason);
  void forget(uint64_t id);
  // Disconnects foreign replicas if the data or the stream contain something that they cannot hold.
  void drop_foreign(int64_t now_us);
  void on_second(int64_t now_us);
  void drop_slow_replicas(int64_t now_us);
  void add_to_stream(int64_t now_us);
  void update_write_gate_locked(int64_t now_us);

  // REQUIRES: the caller holds no stripe lock.
  void begin_snapshot(const ReplicaBatch& batch);
  // Called while all stripes are locked. Returns the connections of the replicas that get the
  // snapshot. The connections stay open until the fork, because the descriptor number of a closed
  // socket could be reused.
  core::Result<std::vector<LinkPtr>> prepare_snapshot(
      const persistence::RdbReplicationInfo& position);
  // The functions that finish a snapshot require that the caller holds mutex_.
  void finish_snapshot(int64_t now_us);
  void send_file(uint64_t id, const std::string& path);
  void finish_file(uint64_t id);

  const ReplicationParts parts_;
  Replication& replication_;
  const PauseGate& pause_;
  AckListener& ack_listener_;
  Backlog& backlog_;
  Counters counters_;
  const std::unique_ptr<StreamPump> pump_;
  std::atomic<bool> acks_are_wanted_{false};

  mutable OrderedMutex mutex_{LockRank::kLeader};  // this mutex guards the members below
  const std::unique_ptr<Replicas> replicas_;
  const std::unique_ptr<ForeignReplicas> foreign_;
  std::map<uint64_t, LinkPtr> links_;
  std::unique_ptr<ReplicaSnapshot> snapshot_;  // the snapshot in progress; null if there is none
  bool is_stopping_ = false;
  Times times_;

  std::thread thread_;
};

}  // namespace server
