// SPDX-License-Identifier: MIT
#include "server/cluster_node/node_figures.h"

#include <algorithm>

#include "server/cluster/election/member.h"

namespace server::cluster {

void NodeFigures::on_tick(const Member& member, const ReplicationFacts& facts, int64_t now_us) {
  const Permit& permit = member.permit();
  const bool is_permitted = permit.allows(now_us);
  // A leader may give up its permit on purpose, in favour of a successor. It then no longer holds a
  // permit, and the end of the permit does not count as a lapse.
  if (was_permitted_ && !is_permitted && permit.is_held()) ++counters_.permit_lapses;
  was_permitted_ = is_permitted;
  uint64_t behind = 0;
  if (member.leads()) {
    for (const ReplicationFacts::Replica& replica : facts.replicas) {
      const uint64_t end = std::max(facts.position.offset, replica.acked);
      if (replica.is_online) behind = std::max(behind, end - replica.acked);
    }
  }
  counters_.bytes_behind = behind;
}

void NodeFigures::on_request(const ChangeTopology& change) {
  const Shard* const shard = change.topology.shard_of(own_id_);
  if (shard == nullptr || shard->leader != own_id_) return;
  asked_revision_ = change.revision;
  is_leader_gone_ = !change.gone.empty();
}

void NodeFigures::on_topology(const TopologyVersion& before, const TopologyVersion& now) {
  const Shard* const old_shard = before.topology.shard_of(own_id_);
  const Shard* const shard = now.topology.shard_of(own_id_);
  if (old_shard == nullptr || shard == nullptr || old_shard->name != shard->name) return;
  if (shard->leader != own_id_ || old_shard->leader == own_id_) return;
  if (asked_revision_ != before.revision) return counters_.count(FailoverCause::kHandover);
  counters_.count(is_leader_gone_ ? FailoverCause::kLostLeader : FailoverCause::kForced);
}

}  // namespace server::cluster
