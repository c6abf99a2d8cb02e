// SPDX-License-Identifier: MIT
//
// Leader: serves the stream to replicas, on a thread of its own.
//
//   connection (I/O thread) ──attach(), ack(), detach()──► Leader ──► socket
//                                                            ▲
//                                        Backlog, snapshot ──┘
//
// A replica's connection goes on reading on its I/O thread, and writes nothing any more once its
// PSYNC was accepted: all that a replica gets comes from here, or from the child that writes a
// snapshot into its socket.
//
// Invariants: a replica that cannot have every byte of the stream is disconnected, as is a foreign
// one that cannot hold what the stream makes. Memory for slow ones is the backlog's, bounded by
// client-output-buffer-limit. A replica serves sub-replicas the same way, but adds nothing to the
// stream.
// Thread safety: all members may be called from any thread; those that say so not by one that
// holds stripes.
// Source: docs/replication.md, "The leader".
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/result.h"
#include "server/process/ordered_mutex.h"
#include "server/replication/leader/replica_state.h"
#include "server/replication/stream/replication_parts.h"
#include "server/replication/stream/stream_listener.h"

namespace persistence {
struct RdbReplicationInfo;
}

namespace server {

class Backlog;
class ForeignReplicas;
class PauseGate;
class ReplicaSender;
class Replicas;
class Replication;
class Session;
class StreamPump;
struct PumpOutcome;
struct ReplicaBatch;
struct ReplicaSnapshot;
struct StreamFlow;

// Notified of replicas' acknowledgements, on the I/O thread of that replica.
class AckListener {
 public:
  virtual void on_ack() = 0;

 protected:
  ~AckListener() = default;
};

class Leader final : public StreamListener {
 public:
  // The arguments of PSYNC; SYNC asks for everything.
  struct Request {
    std::string_view id = "?";
    int64_t offset = -1;  // of the first byte wanted, as PSYNC counts: from 1
    bool is_sync = false;
  };
  struct Counters {
    std::atomic<uint64_t> full_syncs{0};
    std::atomic<uint64_t> partial_syncs{0};
    std::atomic<uint64_t> refused_partial_syncs{0};
    std::atomic<uint64_t> output_bytes{0};
  };
  // One replica's fields in INFO and ROLE.
  struct Description {
    std::string address;
    uint16_t port = 0;
    std::string node_id;  // in a cluster
    ReplicaState state = ReplicaState::kWaits;
    uint64_t acked = 0;
    int64_t lag_s = 0;
  };

  Leader(const ReplicationParts& parts, Replication& replication, const PauseGate& pause,
         AckListener& ack_listener);
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  void start();
  void stop();

  // Makes the session's connection a replica's. Errors: the reply; nothing has changed then.
  core::Result<> attach(const std::shared_ptr<Session>& session, const Request& request);
  // The connection has ended.
  void detach(uint64_t session_id);
  void ack(uint64_t session_id, uint64_t offset, std::optional<uint64_t> synced);
  // Ends all connections of replicas.
  void on_stream_replaced() override;

  // For WAIT and WAITAOF.
  int64_t count_acked(uint64_t offset) const;
  int64_t count_synced(uint64_t offset) const;
  // Asks all replicas to acknowledge, soon.
  void request_acks();

  // Refuses writes while there are too few good replicas, or no longer.
  void update_write_gate() override;

  const Counters& counters() const { return counters_; }
  void reset_counters();
  size_t count() const;
  int64_t count_good() const;
  std::vector<Description> describe() const;

 private:
  using LinkPtr = std::shared_ptr<ReplicaSender>;
  // Monotonic; 0 is never.
  struct Times {
    int64_t next_snapshot_us = 0;
    int64_t next_second_us = 0;
    int64_t last_ping_us = 0;
    int64_t last_replica_us = 0;
  };

  void run();
  // One pass: decides which bytes go to which replica.
  std::vector<StreamFlow> step();
  void finish(const PumpOutcome& outcome);

  // REQUIRES for all: mutex_.
  bool try_partial(const std::shared_ptr<ReplicaSender>& link, const Request& request,
                   int64_t now_us);
  void drop(uint64_t id, std::string_view reason);
  void forget(uint64_t id);
  // Disconnects foreign replicas for which the data or the stream hold something unknown.
  void drop_foreign(int64_t now_us);
  void on_second(int64_t now_us);
  void drop_slow_replicas(int64_t now_us);
  void add_to_stream(int64_t now_us);
  void update_write_gate_locked(int64_t now_us);

  // Snapshots, in leader_snapshots.cpp. Not by a thread that holds stripes.
  void begin_snapshot(const ReplicaBatch& batch);
  // The sockets to send to. They stay open until the fork: else a number could be another's then.
  core::Result<std::vector<LinkPtr>> prepare_snapshot(
      const persistence::RdbReplicationInfo& position);
  // REQUIRES: mutex_.
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

  mutable OrderedMutex mutex_{LockRank::kLeader};  // guards the members below
  const std::unique_ptr<Replicas> replicas_;
  const std::unique_ptr<ForeignReplicas> foreign_;
  std::map<uint64_t, LinkPtr> links_;
  std::unique_ptr<ReplicaSnapshot> snapshot_;  // on its way
  bool is_stopping_ = false;
  Times times_;

  std::thread thread_;
};

}  // namespace server
