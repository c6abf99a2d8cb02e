// SPDX-License-Identifier: MIT
#include "server/cluster_host.h"

#include <mutex>
#include <utility>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "server/config/config.h"
#include "server/dispatch/pause_gate.h"
#include "server/process/server_state.h"
#include "server/replication/leader/leader.h"
#include "server/replication/roles/follower.h"
#include "server/replication/stream/replication.h"

namespace server {

using cluster::Node;
using cluster::ReplicationFacts;
using cluster::Shard;
using core::keyspace::Locking;

namespace {

// A leader that has sent nothing for longer counts as silent.
constexpr int64_t kSilenceUs = core::kSecondUs;

}  // namespace

void ClusterHost::name_node(std::string id) {
  parts_.replication.cluster_place().node_id = std::move(id);
}

ReplicationFacts ClusterHost::facts(const Shard* shard) {
  ReplicationFacts facts;
  if (parts_.replication.is_replica()) {
    const FollowerState link = parts_.follower.figures().state;
    if (link == FollowerState::kSync) is_torn_ = true;
    if (link == FollowerState::kConnected) {
      is_torn_ = false;
      epoch_ = followed_epoch_;
    }
  }
  const bool is_loading = parts_.state.availability.has(Availability::kLoading);
  const uint64_t offset = parts_.replication.offset();
  const bool has_history = epoch_ != 0 || offset != 0 || parts_.keyspace.db_size(0) != 0;
  facts.has_whole_copy = !is_loading && !is_torn_ && has_history;
  facts.hears_leader = parts_.follower.silence_us() < kSilenceUs;
  facts.keeps_log = parts_.config.flag(OptionId::kAppendOnly);
  facts.position = {epoch_, offset};
  if (shard == nullptr) return facts;
  for (const Leader::Description& replica : parts_.leader.describe()) {
    if (!shard->has_member(replica.node_id)) continue;
    const bool is_online = replica.state == ReplicaState::kOnline;
    facts.replicas.push_back({replica.node_id, replica.acked, is_online});
  }
  return facts;
}

void ClusterHost::promote(uint64_t epoch) {
  const auto stream = parts_.replication.hold(Locking::kTake);
  parts_.replication.cluster_place().epoch = epoch;
  parts_.follower.promote(Locking::kTake);
  // A leader that has come back without its data has no history either.
  const bool has_data = parts_.replication.offset() != 0 || parts_.keyspace.db_size(0) != 0;
  if (epoch != 0 && (epoch_ != 0 || has_data)) epoch_ = epoch;
  is_torn_ = false;
}

void ClusterHost::follow(const Node& leader, uint64_t epoch) {
  const bool uses_tls = parts_.config.flag(OptionId::kTlsReplication);
  const uint16_t port = uses_tls && leader.tls_port != 0 ? leader.tls_port : leader.port;
  const auto stream = parts_.replication.hold(Locking::kTake);
  followed_epoch_ = epoch;
  parts_.replication.cluster_place().epoch = epoch;
  parts_.follower.follow({leader.ip, port, false}, Locking::kTake);
}

void ClusterHost::hold_writes(std::function<void(uint64_t offset)> on_held) {
  parts_.pause.hold_writes(PauseGate::Hold::kHandover);
  parts_.pause.drain([this, on_held = std::move(on_held)] {
    parts_.leader.request_acks();
    on_held(parts_.replication.offset());
  });
}

void ClusterHost::release_writes() {
  parts_.pause.release_writes(PauseGate::Hold::kHandover);
}

void ClusterHost::service_changed() {
  parts_.threads.wake_held_back();
}

}  // namespace server
