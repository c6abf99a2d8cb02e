// SPDX-License-Identifier: MIT
//
// Injects the faults of a ClusterModel.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "tests/simulation/cluster_model.h"
#include "tests/simulation/cluster_node_model.h"

namespace simulation {

void ClusterModel::cut(const Node* one, const Node* other, int64_t from_us, int64_t until_us) {
  const std::pair link{std::min(one, other), std::max(one, other)};
  at(from_us, [this, link] { cuts_.insert(link); });
  at(until_us, [this, link] { cuts_.erase(link); });
}

void ClusterModel::old_leader_meets_restarted_one() {
  constexpr int64_t kLost = 20 * kSecond;
  constexpr int64_t kRestart = 50 * kSecond;
  constexpr int64_t kEnd = 80 * kSecond;
  Node& leader = *nodes_[0];
  Node& next = *nodes_[1];
  cut(&leader, nullptr, kLost, kEnd);
  cut(nodes_[2].get(), nullptr, kLost, kEnd);
  cut(&leader, &next, kLost, kRestart);
  cut(&next, nullptr, kRestart, kEnd);
  at(kRestart, [&next] { next.is_up = false; });
  at(kRestart + 100 * kMs, [this, &next] { start(next, false); });
}

void ClusterModel::add_twin() {
  constexpr uint64_t kLivesOfTwin = uint64_t{1} << 32;
  auto twin = std::make_unique<Node>();
  twin->id = nodes_[0]->id;
  twin->shard = nodes_[0]->shard;
  twin->clock_offset_us = pick(0, 1'000'000'000);
  twin->life = kLivesOfTwin;
  nodes_.push_back(std::move(twin));
}

// Two processes have the same id. Schedules random events for them: one of the two dies and
// restarts, is suspended for a while, hands over the shard, or takes it over.
void ClusterModel::trouble_twins() {
  const std::array<int64_t, 5> kinds = {2, 2, 4, 9, 10};
  for (int64_t when_us = 5 * kSecond; when_us < (options_.seconds - kQuietSeconds) * kSecond;
       when_us += pick(kSecond, 20 * kSecond)) {
    const int64_t kind = kinds[static_cast<size_t>(pick(0, kinds.size() - 1))];
    Node& node = *(chance(0.5) ? nodes_.front() : nodes_.back());
    at(when_us, [this, kind, &node] { fault_at_node(node, kind); });
  }
  at((options_.seconds - kQuietSeconds) * kSecond, [this] { heal(); });
}

void ClusterModel::schedule_faults() {
  if (options_.faults == Faults::kOldLeaderMeetsRestartedOne) {
    return old_leader_meets_restarted_one();
  }
  if (options_.faults == Faults::kTwins) return trouble_twins();
  if (options_.faults == Faults::kHandovers) {
    at(5 * kSecond, [this] { hand_over_often(); });
    return at(4 * kSecond, [this] { request(*nodes_.front(), 0); });
  }
  if (options_.faults == Faults::kSlowLoads) return at(10 * kSecond, [this] { load_slowly(); });
  if (options_.faults == Faults::kPowerCuts) return at(10 * kSecond, [this] { cut_power(); });
  if (options_.faults == Faults::kLeaderPowerCuts) {
    return at(10 * kSecond, [this] { cut_power_of_leader(); });
  }
  if (options_.faults == Faults::kFailingLogs) return at(10 * kSecond, [this] { fail_logs(); });
  if (options_.faults == Faults::kAckedWrites) {
    return at(10 * kSecond, [this] { fail_one_member(); });
  }
  if (options_.faults == Faults::kRollingRestarts) return at(5 * kSecond, [this] { roll(); });
  if (options_.faults == Faults::kRestoredEtcd) {
    // Kills leaders or makes them hand over, so that the topology in etcd changes several times
    // before a backup is restored.
    for (int64_t when_us = 10 * kSecond; when_us < 50 * kSecond; when_us += 10 * kSecond) {
      at(when_us, [this] { fault_at_node(*by_id_.at(leader_id()), chance(0.5) ? 2 : 9); });
    }
    return at(70 * kSecond, [this] { restore_etcd(); });
  }
  // The mean time between faults is drawn for each run, so some runs have many more faults than
  // others.
  const int64_t mean_us = pick(500 * kMs, 12 * kSecond) / options_.shards;
  int64_t when_us = 5 * kSecond;
  const int64_t last_us = (options_.seconds - kQuietSeconds) * kSecond;
  while ((when_us += pick(0, 2 * mean_us)) < last_us) {
    at(when_us, [this] { one_fault(); });
  }
  at(last_us, [this] { heal(); });
}

void ClusterModel::one_fault() {
  Node& node = *nodes_[static_cast<size_t>(pick(0, static_cast<int64_t>(nodes_.size()) - 1))];
  const int64_t kind = pick(0, 11);
  if (kind >= 2) return fault_at_node(node, kind);
  if (kind == 0) {
    etcd_down_until_us_ = std::max(etcd_down_until_us_, now_us_ + pick(100 * kMs, 20 * kSecond));
    etcd_stalls_ = chance(0.5);
  } else {
    slow_until_us_ = now_us_ + pick(kSecond, 10 * kSecond);
  }
}

void ClusterModel::fault_at_node(Node& node, int64_t kind) {
  const Node* other = nullptr;
  if (kind == 7)
    other = nodes_[static_cast<size_t>(pick(0, static_cast<int64_t>(nodes_.size()) - 1))].get();
  switch (kind) {
    case 2:
    case 3:
      if (!node.is_up) return;
      node.is_up = false;
      return at(pick(10 * kMs, 15 * kSecond), [this, &node] {
        if (!node.is_up) start(node, false);
      });
    case 4:
      node.stopped_until_us =
          std::max(node.stopped_until_us, now_us_ + pick(10 * kMs, 15 * kSecond));
      return;
    case 5:
    case 6:
    case 7: {
      // Cuts the connection between this node and `other`; a null `other` means etcd.
      const Node* self = &node;
      const std::pair cut{std::min(self, other), std::max(self, other)};
      cuts_.insert(cut);
      return at(pick(500 * kMs, 20 * kSecond), [this, cut] { cuts_.erase(cut); });
    }
    case 8:
      return etcd_->end_lease(node.id);
    case 9:
      return at_node(node, 0, [this](Node& self) {
        (void)self.member->hand_over(self.clock(now_us_), self.member->successor());
      });
    case 10:
      return at_node(node, 0,
                     [this](Node& self) { (void)self.member->take_over(self.clock(now_us_)); });
    default:
      return;
  }
}

const std::string& ClusterModel::leader_id() const {
  return etcd_->topology()->topology.shards.front().leader;
}

void ClusterModel::restore_etcd() {
  // A backup is restored only when all nodes know the newest topology. A node that knows only the
  // topology of the backup could not detect that the backup is old.
  const bool is_seen = std::ranges::all_of(nodes_, [this](auto& node) {
    return node->is_up && node->kept_topology != nullptr &&
           node->kept_topology->revision == etcd_->topology()->revision;
  });
  if (!is_seen) return at(kSecond, [this] { restore_etcd(); });
  etcd_->restore(static_cast<size_t>(pick(1, 5)));
  for (int64_t when_us = 0; when_us < 30 * kSecond; when_us += pick(kSecond, 8 * kSecond)) {
    at(when_us, [this] {
      Node& node = *nodes_[static_cast<size_t>(pick(0, static_cast<int64_t>(nodes_.size()) - 1))];
      fault_at_node(node, pick(2, 10));
    });
  }
  at(50 * kSecond, [this] { recover_etcd(); });
}

void ClusterModel::recover_etcd() {
  heal();
  auto newest = etcd_->topology();
  for (auto& node : nodes_) {
    if (node->kept_topology->revision > newest->revision) newest = node->kept_topology;
  }
  etcd_->recover(newest->topology);
  at(10 * kSecond, [this] { fault_at_node(*by_id_.at(leader_id()), 2); });
}

// Restarts a replica with an empty disk. While the replica loads a snapshot, the leader hands over
// to the third member.
void ClusterModel::load_slowly() {
  if (now_us_ > end_us_ - 2 * kQuietSeconds * kSecond) return;
  at(pick(40 * kSecond, 60 * kSecond), [this] { load_slowly(); });
  const auto* shard = etcd_->topology()->topology.shard(shards_.front()->name);
  if (shard->insync.size() != shard->members.size()) return;
  const auto found = std::ranges::find_if(
      shard->members, [&](const std::string& id) { return id != shard->leader; });
  Node& replica = *by_id_.at(*found);
  etcd_->end_lease(replica.id);
  clear_disk(replica);
  start(replica, false);
  at(pick(3 * kSecond, 12 * kSecond), [this, &replica] {
    Node& leader = *by_id_.at(leader_id());
    at_node(leader, 0, [this, &replica](Node& self) {
      const std::string successor = self.member->successor();
      if (successor != replica.id) (void)self.member->hand_over(self.clock(now_us_), successor);
    });
  });
}

// Every 20 to 30 seconds, lets one member of each shard fail if all members of the shard are in
// sync.
void ClusterModel::fail_one_member() {
  if (now_us_ > end_us_ - kQuietSeconds * kSecond) return;
  at(pick(20 * kSecond, 30 * kSecond), [this] { fail_one_member(); });
  for (auto& facts : shards_) {
    const auto* shard = etcd_->topology()->topology.shard(facts->name);
    Node& leader = *by_id_.at(shard->leader);
    if (!serves(leader) || shard->insync.size() != shard->members.size()) continue;
    const auto number = static_cast<size_t>(pick(0, options_.members - 1));
    Node& node = chance(0.6) ? leader : *by_id_.at(shard->members[number]);
    constexpr int64_t kPowerCut = 2;
    constexpr int64_t kKill = 3;
    const int64_t kind = pick(kPowerCut, 10);
    if (chance(0.5)) end_leader_after_join(*facts, now_us_ + 18 * kSecond);
    if (kind > kKill) {
      fault_at_node(node, kind);
      continue;
    }
    if (kind == kKill) {
      sync_disk(node);
      --node.boot;
    }
    lose_power(node, pick(10 * kMs, 15 * kSecond));
  }
}

// Ends the leader as soon as some member has left the list of members in sync and has joined it
// again.
void ClusterModel::end_leader_after_join(ShardFacts& facts, int64_t until_us, bool has_left) {
  const auto* shard = etcd_->topology()->topology.shard(facts.name);
  Node& leader = *by_id_.at(shard->leader);
  const bool is_whole = shard->insync.size() == shard->members.size();
  if (is_whole && has_left && serves(leader)) {
    sync_disk(leader);
    if (leader.acknowledged > facts.safe.size()) {
      facts.safe.assign(leader.log.begin(),
                        leader.log.begin() + static_cast<int64_t>(leader.acknowledged));
    }
    leader.is_up = false;
    at(10 * kSecond, [this, &leader] {
      if (!leader.is_up) start(leader, false);
    });
  } else if (now_us_ < until_us) {
    at(kMs, [this, &facts, until_us, has_left = has_left || !is_whole] {
      end_leader_after_join(facts, until_us, has_left);
    });
  }
}

void ClusterModel::hand_over_often() {
  at(pick(kSecond, 5 * kSecond), [this] { hand_over_often(); });
  for (auto& facts : shards_) {
    const auto* shard = etcd_->topology()->topology.shard(facts->name);
    at_node(*by_id_.at(shard->leader), 0, [this](Node& self) {
      (void)self.member->hand_over(self.clock(now_us_), self.member->successor());
    });
  }
}

// Restarts one member at a time, as an operator does who relies only on the output of
// `bloomery-cluster status`.
void ClusterModel::roll() {
  if (now_us_ > end_us_ - kQuietSeconds * kSecond) return;
  at(100 * kMs, [this] { roll(); });
  for (auto& facts : shards_) {
    const auto* shard = etcd_->topology()->topology.shard(facts->name);
    Node& leader = *by_id_.at(shard->leader);
    const bool is_whole = shard->insync.size() == shard->members.size() && serves(leader);
    if (!is_whole || leader.holds_writes) continue;
    const auto number = static_cast<size_t>(pick(0, options_.members - 1));
    Node& node = *by_id_.at(shard->members[number]);
    // A member that has stopped is soon removed from the list of members in sync. Until it returns,
    // the leader may have the only copy of new writes.
    const bool are_all_up =
        std::ranges::all_of(shard->members, [this](auto& id) { return by_id_.at(id)->is_up; });
    if (&node == &leader && chance(0.5)) {
      die(leader, *facts);
      if (are_all_up && chance(0.5)) come_back_empty(leader);
    } else if (node.is_up) {
      end(node);
    }
  }
}

void ClusterModel::die(Node& leader, ShardFacts& facts) {
  Log kept = leader.log;
  while (!kept.empty() && written_us_[kept.back()] > now_us_ - kLagUs) kept.pop_back();
  if (kept.size() > facts.safe.size()) facts.safe = std::move(kept);
  leader.is_up = false;
  at(30 * kSecond, [this, &leader] {
    if (!leader.is_up) start(leader, false);
  });
}

void ClusterModel::clear_disk(Node& node) {
  node.disk.clear();
  node.disk_epoch = 0;
  node.kept_shard.clear();
  node.kept_epoch = 0;
  node.kept_topology = nullptr;
}

// Restarts the leader with the same id and an empty disk, before or after its lease has ended.
// Sometimes all other members restart, too.
void ClusterModel::come_back_empty(Node& leader) {
  clear_disk(leader);
  at(pick(10 * kMs, 10 * kSecond), [this, &leader] { start(leader, false); });
  if (chance(0.5)) return;
  for (auto& node : nodes_) {
    if (node.get() == &leader || !node->is_up) continue;
    node->is_up = false;
    at(pick(10 * kMs, 25 * kSecond), [this, other = node.get()] { start(*other, false); });
  }
}

// Ends the node as SIGTERM or SHUTDOWN does. With SIGTERM it hands over the shard that it leads, if
// it can.
void ClusterModel::end(Node& node) {
  at_node(node, 0, [this](Node& self) {
    const int64_t clock_us = self.clock(now_us_);
    const std::string successor = self.member->successor();
    const bool hands_over =
        chance(0.5) && !successor.empty() && self.member->hand_over(clock_us, successor);
    at_node(self, hands_over ? 2 * kSecond : 0, [this](Node& ending) {
      ending.holds_writes = true;
      sync_disk(ending);
      ending.member->close_list(ending.clock(now_us_), ending.log.size());
      close_list(ending, now_us_ + kSecond);
    });
  });
}

void ClusterModel::close_list(Node& node, int64_t until_us) {
  const bool may_leave = node.member->may_leave() || options_.mutation == Mutation::kRevokesEarly;
  if (!may_leave && now_us_ < until_us) {
    return at_node(node, 50 * kMs, [this, until_us](Node& self) { close_list(self, until_us); });
  }
  for (auto& facts : shards_) {
    const auto* shard = etcd_->topology()->topology.shard(facts->name);
    if (shard->leader == node.id && node.log.size() > facts->safe.size()) facts->safe = node.log;
  }
  if (may_leave) etcd_->end_lease(node.id);
  node.is_up = false;
  // The node restarts within five seconds. With the mutation kLeavesLate, the leader still counts
  // the node as in sync at that time.
  at(pick(10 * kMs, 4800 * kMs), [this, &node] { start(node, false); });
}

void ClusterModel::heal() {
  cuts_.clear();
  etcd_down_until_us_ = 0;
  slow_until_us_ = 0;
  for (auto& node : nodes_) {
    node->stopped_until_us = std::min(node->stopped_until_us, now_us_);
    if (!node->is_up) start(*node, false);
  }
}

}  // namespace simulation
