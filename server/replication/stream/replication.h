// SPDX-License-Identifier: MIT
//
// Replication: this server's role, the stream that it produces or follows, and its offset.
//
//   leader:   Journal ──second sink──► Backlog ──► replicas
//   replica:  its leader ──append_applied()──► Backlog ──► sub-replicas
//
// Invariants: the offset is the backlog's end. On a leader the backlog gets every change while the
// keys' stripes are locked; on a replica it gets the leader's bytes, verbatim and in whole units,
// after they were applied and under apply_mutex(). So a thread that holds that mutex and all
// stripes sees matching data and offset. Thread safety: all members may be called from any thread,
// unless they say what they need. Source: docs/replication.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/dispatch/own_changes.h"
#include "server/durability/data/stream_position.h"
#include "server/replication/stream/ids.h"
#include "server/replication/stream/replication_parts.h"

namespace server {

class Backlog;
class OwnExpiries;
class StreamListener;

class Replication final : public StreamPosition, public OwnChanges {
 public:
  using Parts = ReplicationParts;

  explicit Replication(const Parts& parts);
  ~Replication();
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  bool is_replica() const;
  // How often this server has become a replica: what waited for its replicas waits in vain.
  uint64_t demotions() const { return demotions_; }
  ReplicationIds ids() const;
  uint64_t offset() const;
  Backlog& backlog() { return *backlog_; }
  const Backlog& backlog() const { return *backlog_; }

  // The part that serves this server's replicas; null for none. It registers itself.
  void set_listener(StreamListener* listener) { listener_ = listener; }

  // The position in the loaded snapshot, before the server serves: a leader's replicas may continue
  // from there, a replica asks its leader for the rest.
  void restore(const persistence::RdbReplicationInfo& position);

  // Leader: has the stream recorded from now on, if it is not. The first replica needs it.
  void begin_backlog();
  // Leader: nobody has asked for the stream for long; its history is forgotten. Nothing on a
  // replica.
  void end_backlog();

  // Roles. A leader that becomes a replica keeps its history to ask its new leader for the rest.
  // REQUIRES: apply_mutex(), and all stripes, exclusive.
  void become_replica();
  // A replica that becomes a leader begins a history that continues the one so far.
  void become_leader();

  // Replica. REQUIRES for all: apply_mutex().
  // After a full sync: the keyspace is the leader's at that position of that history.
  void adopt(const persistence::RdbReplicationInfo& position);
  // Whether another kind of server makes the stream: what it says is judged again, not taken for
  // effects. Sub-replicas learn it from the snapshot.
  bool stream_is_foreign() const { return stream_is_foreign_; }
  // +CONTINUE under another id, which goes on from here; sub-replicas must ask anew.
  void continue_as(std::string_view new_id);
  // DEBUG CHANGE-REPL-ID: whoever follows has to load everything anew once its link has broken.
  void forget_history();
  // Whole units of the leader's stream that have just been applied; the database selected after
  // them.
  void append_applied(std::string_view bytes, unsigned database);
  unsigned stream_database() const { return stream_database_; }
  // Whether the link to the leader works: READONLY and MASTERDOWN follow from it.
  void set_link_up(bool is_up);
  bool link_is_up() const { return link_is_up_; }
  // A client has changed a key although this is a replica: it had begun while this was a leader.
  void note_own_change() override;
  // The leader's bytes could not be applied: asking for them again would not help.
  void note_divergence() { has_own_changes_ = true; }
  // A writable replica: a client has changed this key of its own.
  void note_own_key(unsigned database, std::string_view key) override;
  OwnExpiries& own_expiries() { return *own_expiries_; }

  // Leader that hands its role over: nothing is added to the stream, so that its end may be
  // compared with what a replica has; then become_replica(), or else it goes on.
  // REQUIRES: apply_mutex(), and all stripes.
  void hold_stream();
  void release_stream();

  // What servers of a cluster tell each other when they connect.
  struct ClusterPlace {
    // In which this server leads its shard, or follows its leader; 0 elsewhere. Neither side of a
    // link talks to one of another epoch.
    std::atomic<uint64_t> epoch{0};
    // This node's id, by which its leader knows it: it need not connect from the address that
    // clients are told. Set before the threads start.
    std::string node_id;
  };
  ClusterPlace& cluster_place() { return cluster_place_; }

  // Leader: the next command in the stream states its database.
  void restate_database();

  // StreamPosition.
  OrderedMutex& apply_mutex() override { return apply_mutex_; }
  std::optional<persistence::RdbReplicationInfo> position() const override;
  // Only a full sync makes this a copy of its leader again.
  bool has_diverged() const override { return has_own_changes_; }

 private:
  void set_role(bool is_replica);
  void update_availability();
  void tell_stream_replaced() const;

  const Parts parts_;
  OrderedMutex apply_mutex_{LockRank::kStream};  // see the invariants
  std::atomic<bool> link_is_up_{false};
  std::atomic<unsigned> stream_database_{0};
  std::atomic<bool> stream_is_foreign_{false};
  std::atomic<bool> has_own_changes_{false};
  std::atomic<uint64_t> demotions_{0};
  ClusterPlace cluster_place_;
  // Held around every change of the role or of what the journal tells the backlog: a replica's is
  // told nothing but its leader's stream.
  OrderedMutex role_mutex_{LockRank::kRole};
  mutable OrderedMutex ids_mutex_{LockRank::kStreamIds};  // guards ids_
  ReplicationIds ids_;
  const std::unique_ptr<Backlog> backlog_;
  const std::unique_ptr<OwnExpiries> own_expiries_;
  StreamListener* listener_ = nullptr;
};

}  // namespace server
