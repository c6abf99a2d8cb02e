// SPDX-License-Identifier: MIT
//
// Faults of a ClusterModel at the disks of its nodes: power cuts and append logs that fail.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/cluster_model.h"
#include "tests/simulation/cluster_node_model.h"

namespace simulation {
namespace {

// Duration for which an append log fails. After half of it, a leader with a failing log must have
// handed over.
constexpr int64_t kLogFailsUs = 16 * kSecond;
constexpr int64_t kHandOver = 9;  // the `kind` for which fault_at_node() hands a shard over

}  // namespace

// The node loses the log entries that are not synced.
void ClusterModel::lose_power(Node& node, int64_t off_us) {
  node.is_up = false;
  ++node.boot;
  at(off_us, [this, &node] {
    if (!node.is_up) start(node, false);
  });
}

void ClusterModel::cut_power() {
  if (now_us_ > end_us_ - 2 * kQuietSeconds * kSecond) return;
  at(pick(35 * kSecond, 50 * kSecond), [this] { cut_power(); });
  for (auto& facts : shards_) {
    const auto* shard = etcd_->topology()->topology.shard(facts->name);
    Node& leader = *by_id_.at(shard->leader);
    if (!serves(leader)) continue;
    if (chance(0.7)) sync_disk(leader);
    const bool has_most = std::ranges::all_of(
        shard->members, [&](auto& id) { return by_id_.at(id)->disk.size() <= leader.disk.size(); });
    const bool is_new =
        leader.disk_epoch == shard->epoch && leader.disk.size() > facts->safe.size();
    if (has_most && is_new) facts->safe = leader.disk;
  }
  etcd_stalls_ = false;
  etcd_down_until_us_ = now_us_ + pick(12 * kSecond, 20 * kSecond);
  for (auto& node : nodes_) {
    lose_power(*node, pick(10 * kMs, 3 * kSecond));
  }
}

// Cuts the leader's power, so it loses the unsynced end of its log. In a shard of two members, both
// may lose their power and return in either order. A replica may have more entries than the leader:
// on its disk, or in its memory if it keeps its power.
void ClusterModel::cut_power_of_leader() {
  if (now_us_ > end_us_ - 2 * kQuietSeconds * kSecond) return;
  at(pick(35 * kSecond, 50 * kSecond), [this] { cut_power_of_leader(); });
  for (auto& facts : shards_) {
    const auto* shard = etcd_->topology()->topology.shard(facts->name);
    Node& leader = *by_id_.at(shard->leader);
    if (!serves(leader) || shard->insync.size() != shard->members.size()) continue;
    const bool is_of_all = options_.members == 2 && chance(0.5);
    for (const std::string& id : shard->members) {
      const Node& node = *by_id_.at(id);
      if (&node == &leader && !is_of_all) continue;
      const bool is_present =
          is_of_all ? node.disk_epoch == shard->epoch : node.history_epoch == shard->epoch;
      const Log& kept = is_of_all ? node.disk : node.log;
      const bool is_known = is_present && is_prefix(kept, leader.log);
      if (is_known && kept.size() > facts->safe.size()) facts->safe = kept;
    }
    for (const std::string& id : shard->members) {
      Node& node = *by_id_.at(id);
      if (&node == &leader || is_of_all) lose_power(node, pick(10 * kMs, 3 * kSecond));
    }
  }
}

// Causes one event in each shard whose members are all in sync: the leader's log fails, or the
// leader crashes, hands over or shuts down. The log of a replica may fail before the event.
void ClusterModel::fail_logs() {
  if (now_us_ > end_us_ - 2 * kQuietSeconds * kSecond) return;
  at(pick(40 * kSecond, 50 * kSecond), [this] { fail_logs(); });
  for (auto& facts : shards_) {
    const auto* shard = etcd_->topology()->topology.shard(facts->name);
    Node& leader = *by_id_.at(shard->leader);
    if (!serves(leader) || shard->insync.size() != shard->members.size()) continue;
    std::vector<std::string> replicas = shard->members;
    std::erase(replicas, leader.id);
    const auto number = static_cast<size_t>(pick(0, static_cast<int64_t>(replicas.size()) - 1));
    if (chance(0.7)) fail_log(*by_id_.at(replicas[number]));
    const bool is_planned = options_.members == 2 || chance(0.3);
    // A planned event is a handover or a shutdown of the leader. It happens one second from now.
    // The leader then already knows of a failure of the replica's log. An unplanned event is a
    // crash of the leader or a failure of its log. It happens at a random time within this second.
    at(is_planned ? kSecond : pick(0, kSecond), [this, &leader, is_planned] {
      if (is_planned) return chance(0.5) ? fault_at_node(leader, kHandOver) : end(leader);
      if (chance(0.7)) return fail_log(leader);
      leader.is_up = false;
      at(kLogFailsUs, [this, &leader] {
        if (!leader.is_up) start(leader, false);
      });
    });
    at(kLogFailsUs / 2, [this, &facts] {
      const auto* later = etcd_->topology()->topology.shard(facts->name);
      if (!by_id_.at(later->leader)->log_works) fail(later->leader + " leads and its log fails");
    });
  }
}

void ClusterModel::fail_log(Node& node) {
  node.log_works = false;
  at(kLogFailsUs, [&node] { node.log_works = true; });
}

}  // namespace simulation
