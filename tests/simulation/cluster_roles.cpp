// SPDX-License-Identifier: MIT
//
// Simulates the roles of the nodes of a ClusterModel, and the replication between them.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/simulation/cluster_model.h"
#include "tests/simulation/cluster_node_model.h"

namespace simulation {

using server::cluster::ReplicationFacts;

namespace {

constexpr int64_t kLoadUs = 15 * kSecond;

}  // namespace

void ClusterModel::sync_disk(Node& node) {
  node.disk = node.log;
  node.disk_epoch = node.history_epoch;
}

void ClusterModel::look_at_role(Node& node) {
  const bool has_history = node.history_epoch != 0 || !node.log.empty();
  if (node.member->leads() && node.stream_epoch != 0 && has_history) {
    node.history_epoch = node.stream_epoch;
  }
  if (now_us_ - node.synced_us >= kSecond) {
    node.synced_us = now_us_;
    if (node.log_works) sync_disk(node);
    // A node does not store every topology, so a restarted node may know an old topology. The epoch
    // is always stored.
    const bool is_known = node.member->topology().revision != 0;
    const bool is_drawn = options_.faults == Faults::kDrawn;
    const bool is_always_kept =
        options_.faults == Faults::kRestoredEtcd || options_.faults == Faults::kPowerCuts ||
        options_.faults == Faults::kLeaderPowerCuts || options_.faults == Faults::kAckedWrites;
    if (is_known && (!node.kept_topology || is_always_kept || (is_drawn && chance(0.1)))) {
      node.kept_topology = std::make_shared<TopologyVersion>(node.member->topology());
    }
  }
  ReplicationFacts facts;
  facts.has_whole_copy =
      node.loads_until_us == 0 && (options_.mutation == Mutation::kLeadsEmpty || has_history);
  facts.hears_leader = !node.follows.empty() && now_us_ - node.heard_us < kSecond;
  facts.led_epoch = node.stream_epoch;
  if (options_.mutation == Mutation::kServesBeforeRole && node.member->leads()) {
    facts.led_epoch = node.member->shard()->epoch;
  }
  const bool believes = node.member->leads() ? options_.mutation == Mutation::kLeaderWithoutLog
                                             : options_.mutation == Mutation::kCandidateWithoutLog;
  facts.log_works = node.log_works || believes;
  facts.present_until_us = node.is_present ? node.lease_end_us : 0;
  if (options_.mutation == Mutation::kAbsentMayLead) facts.present_until_us = INT64_MAX;
  facts.position = {node.history_epoch, node.log.size()};
  for (const auto& [id, ack] : node.acks) {
    const Node& replica = *by_id_.at(id);
    const bool is_late = options_.mutation == Mutation::kLeavesLate;
    const bool is_linked = is_late || (replica.is_up && replica.life == ack.life);
    const int64_t limit_us = (is_late ? 5 : 2) * kSecond;
    const bool log_works = ack.log_works || options_.mutation == Mutation::kNamesAnySuccessor;
    facts.replicas.push_back(
        {id, ack.acked, is_linked && now_us_ - ack.at_us < limit_us, log_works});
  }
  node.member->tick(node.clock(now_us_), facts);
}

// Requests a role for the node: replica of `leader`, or leader if `leader` is empty. The node gets
// the role after some time. If another role is requested before that, the node gets only the role
// that was requested last.
void ClusterModel::change_role(Node& node, const std::string& leader, uint64_t epoch) {
  const uint64_t role = ++node.roles;
  if (leader != node.follows && node.loads_until_us != 0) {
    if (options_.mutation == Mutation::kThreadLoads) {
      node.stopped_until_us = std::max(node.stopped_until_us, node.loads_until_us);
    } else {
      ++node.load;  // cancels the running load of a snapshot
      node.loads_until_us = 0;
    }
  }
  const int64_t delay_us = chance(0.1) ? pick(0, kSecond) : pick(0, 5 * kMs);
  at_node(node, delay_us, [this, role, leader, epoch](Node& self) {
    if (self.roles != role) return;
    self.follows = leader;
    self.follows_epoch = epoch;
    self.stream_epoch = leader.empty() ? epoch : 0;
    self.acks.clear();
    self.acknowledged = 0;
    look_at_role(self);
  });
}

// Requests the missing entries from the leader, acknowledges the entries on the disk, and reports
// whether the append log works.
void ClusterModel::replicate(Node& node) {
  at_node(node, pick(50 * kMs, 150 * kMs), [this](Node& self) { replicate(self); });
  if (node.follows.empty() || node.loads_until_us != 0) return;
  Node& leader = *by_id_.at(node.follows);
  if (is_cut(node, &leader) || is_cut(leader, &node) || !leader.is_up) return;
  const bool is_synced = node.history_epoch == node.follows_epoch;
  const uint64_t acked = is_synced && is_prefix(node.disk, node.log) ? node.disk.size() : 0;
  const Node::Ack ack{acked, 0, node.life, node.log_works};
  at_node(leader, delay(), [this, &node, ack, epoch = node.follows_epoch](Node& self) {
    if (!self.member->leads() || self.stream_epoch != epoch) return;
    if (ack.acked != 0) (self.acks[node.id] = ack).at_us = now_us_;
    if (node.life != ack.life || is_cut(self, &node)) return;
    auto log = std::make_shared<Log>(self.log);
    at_node(node, delay(), [this, log, epoch, from = self.id](Node& replica) {
      if (replica.follows != from || replica.follows_epoch != epoch) return;
      if (!replica.log_works) return;  // a replica whose log fails stops reading
      replica.heard_us = now_us_;
      const bool goes_on = is_prefix(replica.log, *log);
      // A newer answer of the leader arrived earlier, so the replica already has a longer log.
      if (!goes_on && replica.history_epoch == epoch) return;
      const bool loads = !goes_on || replica.log.empty();
      if (loads && options_.faults == Faults::kSlowLoads) return load(replica, *log, epoch);
      replica.log = *log;
      replica.history_epoch = epoch;
    });
  });
}

void ClusterModel::load(Node& node, const Log& log, uint64_t epoch) {
  if (node.loads_until_us != 0) return;
  node.log.clear();
  node.history_epoch = 0;
  node.loads_until_us = now_us_ + kLoadUs;
  at_node(node, kLoadUs, [log, epoch, load = ++node.load](Node& self) {
    if (self.load != load) return;
    self.log = log;
    self.history_epoch = epoch;
    self.loads_until_us = 0;
  });
}

}  // namespace simulation
