// SPDX-License-Identifier: MIT
//
// Checks the invariants of a ClusterModel.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/cluster_model.h"
#include "tests/simulation/cluster_node_model.h"

namespace simulation {
namespace {

constexpr int64_t kNewUs = 25 * kSecond;

}  // namespace

void ClusterModel::check(Node& node) {
  if (!serves(node)) return;
  const uint64_t epoch = node.member->topology().topology.shard_of(node.id)->epoch;
  const auto found =
      std::ranges::find(shards_, node.shard, [](auto& facts) { return facts->name; });
  ShardFacts& facts = **found;
  if (epoch < facts.serving_epoch || (epoch == facts.serving_epoch && facts.serving != &node)) {
    return fail(fmt::format("{} replies in epoch {} after {} in epoch {}", node.id, epoch,
                            facts.serving->id, facts.serving_epoch));
  }
  const bool has_role = node.stream_epoch == epoch;
  if (!has_role && options_.mutation != Mutation::kLeaseIsPermit) {
    return fail(fmt::format("{} acknowledges in epoch {} as a replica", node.id, epoch));
  }
  if (epoch == facts.serving_epoch) return;
  facts.serving_epoch = epoch;
  const Node* const former = std::exchange(facts.serving, &node);
  // A leader whose log fails hands over. If etcd refuses the handover, the same node leads again in
  // a new epoch. Any other node must not begin to lead while its own log fails.
  if (!node.log_works && &node != former) {
    return fail(node.id + " begins to lead and its log fails");
  }
  const bool is_kept =
      options_.faults == Faults::kRollingRestarts || options_.faults == Faults::kPowerCuts ||
      options_.faults == Faults::kLeaderPowerCuts || options_.faults == Faults::kAckedWrites;
  const bool may_lose =
      !is_kept && (options_.mutation != Mutation::kNone || options_.faults == Faults::kTwins);
  if (!may_lose && !is_prefix(facts.safe, node.log)) {
    fail(fmt::format("{} leads in epoch {} without what all in sync had", node.id, epoch));
  }
}

void ClusterModel::check_leases() {
  for (const auto& node : nodes_) {
    if (node->is_up && node->is_present && !etcd_->is_alive(node->id)) {
      return fail(node->id + " has lost its lease while it loads");
    }
  }
}

size_t ClusterModel::common_length(const Log& log, const std::vector<std::string>& ids) const {
  size_t common = log.size();
  for (const std::string& id : ids) {
    const Node& node = *by_id_.at(id);
    if (!is_prefix(node.disk, log)) return 0;
    common = std::min(common, node.disk.size());
  }
  return common;
}

void ClusterModel::record_safe(ShardFacts& facts) {
  const auto* shard = etcd_->topology()->topology.shard(facts.name);
  const Node& leader = *by_id_.at(shard->leader);
  if (facts.serving != &leader || shard->epoch != facts.serving_epoch || !serves(leader)) return;
  const size_t of_all = common_length(leader.log, shard->members);
  // A member may join the list of members in sync before it has the newest entries. So an entry
  // that not all members have counts as safe only after a delay.
  size_t of_insync = common_length(leader.log, shard->insync);
  while (of_insync > of_all && written_us_[leader.log[of_insync - 1]] > now_us_ - kNewUs)
    --of_insync;
  const size_t length = std::max(of_all, of_insync);
  if (length > facts.safe.size()) {
    facts.safe.assign(leader.log.begin(), leader.log.begin() + static_cast<int64_t>(length));
  }
}

// Updates the number of writes that the leader has acknowledged, and the list of writes that must
// not be lost. Used only if replies to writes wait for the members in sync. If the leader is the
// only member in sync, a power cut may destroy acknowledged writes that are not on its disk yet.
void ClusterModel::record_acknowledged(Node& leader) {
  if (options_.faults != Faults::kAckedWrites || !serves(leader)) return;
  const auto found =
      std::ranges::find(shards_, leader.shard, [](auto& facts) { return facts->name; });
  if ((*found)->serving != &leader) return;
  const auto required = leader.member->required_acks();
  size_t length = leader.log.size();
  for (const std::string& id : required) {
    const auto ack = leader.acks.find(id);
    const bool is_linked = ack != leader.acks.end() && by_id_.at(id)->life == ack->second.life;
    length = std::min<size_t>(length, is_linked ? ack->second.acked : 0);
  }
  if (options_.mutation == Mutation::kAcknowledgesEarly) length = leader.log.size();
  leader.acknowledged = std::max(leader.acknowledged, length);
  if (required.empty()) length = std::min(length, leader.disk.size());
  Log& safe = (*found)->safe;
  if (length > safe.size()) {
    safe.assign(leader.log.begin(), leader.log.begin() + static_cast<int64_t>(length));
  }
}

void ClusterModel::check_end() {
  if (options_.faults == Faults::kTwins) {
    if (std::ranges::none_of(nodes_, [this](auto& node) { return serves(*node); }))
      fail("nobody serves");
    return;
  }
  for (auto& facts : shards_) {
    const auto* shard = etcd_->topology()->topology.shard(facts->name);
    Node& leader = *by_id_.at(shard->leader);
    if (!serves(leader)) return fail(fmt::format("no leader serves {}", facts->name));
    if (!is_prefix(facts->safe, leader.log)) return fail(facts->name + " has lost entries");
    if (shard->insync.size() != shard->members.size()) {
      return fail(facts->name + " has members that did not catch up");
    }
    for (const std::string& id : shard->members) {
      const TopologyVersion& known = by_id_.at(id)->member->topology();
      if (known.revision != etcd_->topology()->revision) {
        return fail(id + " knows an old topology: its clients would be sent in circles");
      }
    }
  }
}

void ClusterModel::fail(const std::string& fault) {
  if (!result_.fault.empty()) return;
  result_.fault = fmt::format("seed {}, {} s before the end: {}", options_.seed,
                              (end_us_ - now_us_) / kSecond, fault);
}

}  // namespace simulation
