// SPDX-License-Identifier: MIT
//
// Replication: this server's role, the stream that it produces or follows, and the offset of the
// stream's end.
//
//   leader:   Journal ──second sink──► Backlog ──► replicas
//   replica:  its leader ──append_applied()──► Backlog ──► sub-replicas
//
// Invariants: the offset is the backlog's end. On a leader the backlog gets every change while the
// stripes of the keys are locked. On a replica it gets the leader's bytes, verbatim and in whole
// units, after they were applied and under apply_mutex(). So a thread that holds that mutex and all
// stripe locks sees matching data and offset.
// Thread safety: all members may be called from any thread, unless their comments restrict it.
// Source: docs/replication.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/dispatch/own_changes.h"
#include "server/durability/data/stream_position.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/cluster_place.h"
#include "server/replication/stream/ids.h"
#include "server/replication/stream/own_expiries.h"
#include "server/replication/stream/replication_parts.h"

namespace server {

class StreamFeed;

class Replication final : public StreamPosition, public OwnChanges {
 public:
  using Parts = ReplicationParts;

  explicit Replication(const Parts& parts);
  ~Replication();
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  bool is_replica() const;
  // Returns the number of times that this server has become a replica or has got another history.
  // After that, earlier offsets mean nothing. So a wait for replicas fails if the number increases
  // meanwhile.
  uint64_t demotions() const { return demotions_; }
  ReplicationIds ids() const { return ids_.get(); }
  uint64_t offset() const { return backlog_.end_offset(); }
  Backlog& backlog() { return backlog_; }
  const Backlog& backlog() const { return backlog_; }

  // Leader, which serves this server's replicas, sets these functions. Any thread may call them,
  // with or without stripe locks. on_stream_replaced() is called when the stream was replaced. All
  // connected replicas must then reconnect and send PSYNC again.
  std::function<void()> on_stream_replaced = [] {};
  // Called when the role has changed. Checks again whether min-replicas-to-write forbids writes,
  // because this option applies only to a leader.
  std::function<void()> on_role_changed = [] {};

  // Sets the stream position of the loaded data. Must be called before clients are served. A
  // leader's replicas may continue from there. A replica requests the stream after this position
  // from its leader. A node of a cluster keeps the position until it has a role.
  void restore(const persistence::RdbReplicationInfo& position);
  // Called when this node of a cluster begins to lead in an epoch. Replicas may then continue from
  // the restored position, unless the data are ahead of it. Does nothing if no position was
  // restored. REQUIRES: apply_mutex() and the locks of all stripes are held.
  void lead_restored();

  // Starts to record the stream on a leader, for its first replica.
  void begin_backlog();
  // Frees the backlog of a leader. Called when no replica has been connected for repl-backlog-ttl
  // seconds. Has no effect on a replica.
  void end_backlog();

  // Changes the role from leader to replica. This server keeps its history, to request only the
  // missing part of the stream from its new leader. REQUIRES, also for become_leader():
  // apply_mutex() is held, and all stripes are locked, at least in shared mode.
  void become_replica();
  // Changes the role from replica to leader. The new history continues the present one.
  void become_leader();

  // The functions below are for a replica. adopt(), begin_replacement(), continue_as(),
  // append_applied(), set_link_up() and record_divergence() REQUIRE that apply_mutex() is held.
  // adopt() is called after a full sync, when the keyspace equals the leader's at `position`.
  void adopt(const persistence::RdbReplicationInfo& position);
  // Returns whether a server other than Bloomery produces the stream. The commands of such a stream
  // are executed again rather than applied as effects. Sub-replicas learn the kind of stream from
  // the snapshot.
  bool stream_is_foreign() const { return stream_is_foreign_; }
  // Called before a full sync replaces the keyspace. Until adopt() the position is unknown.
  void begin_replacement();
  // Called when the leader has answered +CONTINUE with another id of the same history. Sub-replicas
  // must send PSYNC again.
  void continue_as(std::string_view new_id);
  // Implements DEBUG CHANGE-REPL-ID: replicas need a full sync after their link breaks.
  void forget_history() {
    ids_.change([](ReplicationIds& ids) { ids.renew_ids(); });
  }
  // Appends whole units of the leader's stream that were just applied. `database` is the one
  // selected after them.
  void append_applied(std::string_view bytes, unsigned database);
  unsigned stream_database() const;
  // Records whether the link to the leader works. While the link is down, commands fail with
  // MASTERDOWN if replica-serve-stale-data is off.
  void set_link_up(bool is_up);
  bool link_is_up() const { return link_is_up_; }
  // Called when a client's command that began before the role change has changed a key on this
  // replica.
  void record_own_change() override;
  // Called when the leader's bytes could not be applied. Requesting them again would not help.
  void record_divergence() { has_own_changes_ = true; }
  // Called when a client has changed the key on a writable replica.
  void record_own_key(unsigned database, std::string_view key) override;
  OwnExpiries& own_expiries() { return own_expiries_; }

  // Stops adding commands to the stream of this leader, so that a failover can compare the stream's
  // end with a replica's offset. Must be followed by become_replica() or release_stream().
  // REQUIRES: apply_mutex() and the locks of all stripes are held.
  void hold_stream();
  void release_stream();

  // Returns the epochs and the id of this cluster node, and the epoch of the history that its data
  // come from.
  ClusterPlace& cluster_place() { return cluster_place_; }

  // If this server is a leader, adds SELECT to its stream before the next command, even if the
  // database has not changed.
  void restate_database();

  // The functions below implement StreamPosition.
  OrderedMutex& apply_mutex() override { return apply_mutex_; }
  std::optional<persistence::RdbReplicationInfo> position() const override;
  // Returns whether only a full sync can make this server a copy of its leader again.
  bool has_diverged() const override;

 private:
  void set_role(bool is_replica);
  void update_availability();
  // Returns the position line for an append log that ends at the offset `journal_end` of the
  // journal. The line is empty if the position is unknown, or if the journal has grown beyond that
  // offset.
  std::string position_line(uint64_t journal_end);

  const Parts parts_;
  // Serializes changes of a replica's data and offset, as the invariants of Replication require.
  OrderedMutex apply_mutex_{LockRank::kStream};
  std::atomic<bool> link_is_up_{false};
  std::atomic<bool> stream_is_foreign_{false};
  std::atomic<bool> has_own_changes_{false};
  std::atomic<uint64_t> demotions_{0};
  ClusterPlace cluster_place_;
  StreamIds ids_;
  Backlog backlog_;
  // The mutex of the StreamFeed guards the role, and the changes of a replica's offset and
  // database.
  const std::unique_ptr<StreamFeed> feed_;
  OwnExpiries own_expiries_;
};

}  // namespace server
