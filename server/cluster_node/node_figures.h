// SPDX-License-Identifier: MIT
//
// NodeFigures: updates the ClusterCounters of this node from the state of its Member.
//
// Thread safety: belongs to the cluster's thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "server/cluster/cluster_counters.h"
#include "server/cluster/election/member_actions.h"
#include "server/cluster/topology.h"

namespace server::cluster {

class Member;

class NodeFigures {
 public:
  NodeFigures(ClusterCounters& counters, std::string own_id)
      : counters_(counters), own_id_(std::move(own_id)) {}

  // Called at each tick. Records whether the permit has lapsed, and how many bytes of the stream
  // the replicas lack.
  void on_tick(const Member& member, const ReplicationFacts& facts, int64_t now_us);
  // Called before the requested change of the topology is sent to etcd.
  void on_request(const ChangeTopology& change);
  // Called when the Member has adopted another topology. If this node has become the leader of its
  // shard, counts a failover by its cause.
  void on_topology(const TopologyVersion& before, const TopologyVersion& now);

 private:
  ClusterCounters& counters_;
  const std::string own_id_;
  bool was_permitted_ = false;
  // The revision of the topology from which this node made its last request to lead a shard.
  uint64_t asked_revision_ = 0;
  bool is_leader_gone_ = false;
};

}  // namespace server::cluster
