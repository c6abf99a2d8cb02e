// SPDX-License-Identifier: MIT
#include "server/cluster_host.h"

#include <utility>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/dispatch/pause_gate.h"
#include "server/replication/leader/leader.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"

namespace server {

using cluster::Node;
using cluster::ReplicationFacts;
using cluster::Shard;
using core::keyspace::kAllStripes;
using core::keyspace::Locking;
using core::keyspace::LockMode;

namespace {

// Time without bytes from the leader after which the leader counts as silent.
constexpr int64_t kSilenceUs = core::kSecondUs;

}  // namespace

void ClusterHost::name_node(std::string id) {
  parts_.replication.cluster_place().node_id = std::move(id);
}

ReplicationFacts ClusterHost::facts(const Shard* shard) {
  ReplicationFacts facts;
  const auto& place = parts_.replication.cluster_place();
  const bool is_loading = parts_.state.availability.has(Availability::kLoading);
  const bool is_torn =
      place.is_torn || parts_.replica_controller.figures().state.load() == ReplicaLinkState::kSync;
  const uint64_t offset = parts_.replication.offset();
  const bool has_history =
      place.history_epoch != 0 || offset != 0 || parts_.keyspace.db_size(0) != 0;
  facts.led_epoch = place.led_epoch;
  facts.has_whole_copy = !is_loading && !is_torn && has_history;
  facts.leader_silence_us = parts_.replica_controller.silence_us();
  // If the epochs differ, silence_us() measures the link to the leader of another epoch, not to the
  // shard's present leader.
  const bool is_of_shard = shard == nullptr || place.epoch == shard->epoch;
  facts.hears_leader = is_of_shard && facts.leader_silence_us < kSilenceUs;
  facts.log_works = !parts_.state.availability.has(Availability::kAppendLogFails);
  facts.keeps_log = parts_.config.flag(OptionId::kAppendOnly);
  // A node that led and then restarted without its data has lost the history of the epoch in which
  // it led. So the node must not report a position in that epoch.
  const bool has_led = facts.led_epoch != 0 && has_history;
  facts.position = {has_led ? facts.led_epoch : place.history_epoch.load(), offset};
  if (shard == nullptr) return facts;
  for (const Leader::Description& replica : parts_.leader.describe()) {
    if (!shard->has_member(replica.node_id)) continue;
    const bool is_online = replica.state == ReplicaState::kOnline;
    facts.replicas.push_back({replica.node_id, replica.acked, is_online, replica.log_works});
  }
  return facts;
}

void ClusterHost::stop_leading() {
  auto& place = parts_.replication.cluster_place();
  const bool has_data = parts_.replication.offset() != 0 || parts_.keyspace.db_size(0) != 0;
  const uint64_t led_epoch = place.led_epoch;
  if (led_epoch != 0 && has_data) place.history_epoch = led_epoch;
  place.led_epoch = 0;
}

void ClusterHost::promote(uint64_t epoch) {
  parts_.replica_controller.give_up_unless(std::nullopt);
  const auto stream = parts_.replication.hold(Locking::kTake);
  stop_leading();
  auto& place = parts_.replication.cluster_place();
  place.epoch = epoch;
  if (!parts_.replica_controller.promote(Locking::kTake) && epoch != 0) {
    const auto stripes = parts_.keyspace.lock(kAllStripes, LockMode::kShared);
    parts_.replication.lead_restored();
  }
  place.is_torn = false;
  place.led_epoch = epoch;
}

void ClusterHost::follow(const Node& leader, uint64_t epoch) {
  const bool uses_tls = parts_.config.flag(OptionId::kTlsReplication);
  const uint16_t port = uses_tls && leader.tls_port != 0 ? leader.tls_port : leader.port;
  const ReplicaController::Target target{leader.ip, port, false};
  parts_.replica_controller.give_up_unless(target);
  const auto stream = parts_.replication.hold(Locking::kTake);
  stop_leading();
  auto& place = parts_.replication.cluster_place();
  place.epoch = epoch;
  const bool is_same = !parts_.replica_controller.follow(target, Locking::kTake);
  // If this node already followed this leader and the link is up, the node's data also belong to
  // the leader's history in the new epoch.
  if (is_same && parts_.replication.link_is_up()) place.history_epoch = epoch;
}

void ClusterHost::hold_writes(std::function<void(uint64_t offset)> on_held) {
  parts_.pause.hold_writes(PauseGate::Hold::kResigning);
  parts_.pause.drain([this, on_held = std::move(on_held)] { on_held(parts_.leader.end_stream()); });
}

void ClusterHost::release_writes() {
  parts_.pause.release_writes(PauseGate::Hold::kResigning);
}

void ClusterHost::service_changed() {
  parts_.threads.wake_held_back();
}

}  // namespace server
