// SPDX-License-Identifier: MIT
#include "server/cluster/election/replica_part.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace server::cluster {
namespace {

constexpr int64_t kForceUs = 10'000'000;
// A member campaigns when etcd has had no key alive/<leader> for kGraceUs. If etcd has ended the
// lease of a living leader too early, the leader restores its key within this time. While the
// stream of the leader still arrives, the leader is alive and etcd may be slow. So the member then
// waits for the longer time kHeardGraceUs.
constexpr int64_t kGraceUs = 300'000;
constexpr int64_t kHeardGraceUs = 2'000'000;
// Time after this node's start, in units of PermitTimes::ask_us. Within this time etcd deletes the
// key alive/<id> of a leader that died before the start. The time is long enough even if the
// members of etcd must elect a new leader among themselves.
constexpr int64_t kLeaseOfTheDeadAsks = 40;
// A restarted leader may answer that it has all data that this node has. Then this node does not
// take over for five node timeouts. Within this time the leader must register in etcd. The leader
// may need four node timeouts to wait for the answers of the other members.
constexpr int64_t kYieldAsks = 50;
// A member rejects a leader's request for a promise if the leader's epoch is too high. The epoch
// may exceed that in the member's topology by at most this number. A member that promises stores
// the leader's epoch on its disk. If the stored epoch were absurdly high, the member could no
// longer campaign.
constexpr uint64_t kEpochsAhead = 1000;

}  // namespace

bool ReplicaPart::leader_is_gone(const Shard& shard) const {
  return state_.alive && !state_.alive->contains(shard.leader);
}

bool ReplicaPart::can_stand(const Shard& shard, int64_t now_us) const {
  // A topology whose epoch is below the kept epoch is old, because the shard has had another leader
  // after that topology. This node then does not campaign.
  return shard.is_insync(state_.options.id) && state_.facts.has_whole_copy &&
         state_.facts.log_works && shard.epoch >= state_.kept.epoch() &&
         now_us >= state_.options.started_us + state_.options.times.wait_us &&
         now_us >= promised_until_us_ && (now_us < forced_until_us_ || !is_behind_for_sure());
}

void ReplicaPart::look_at_leader(const Shard& shard, int64_t now_us) {
  if (!leader_is_gone(shard)) {
    leader_seen_us_ = now_us;
    yielding_since_us_ = 0;
  }
  if (state_.facts.hears_leader) has_connected_ = true;
  const MemberOptions& options = state_.options;
  const bool is_of_the_living =
      now_us >= options.started_us + kLeaseOfTheDeadAsks * options.times.ask_us;
  if (is_of_the_living && state_.alive && state_.alive->contains(shard.leader)) {
    leader_has_lived_ = true;
  }
}

void ReplicaPart::step(const Shard& shard, int64_t now_us) {
  const bool is_forced = now_us < forced_until_us_;
  look_at_leader(shard, now_us);
  const int64_t grace_us = state_.facts.hears_leader ? kHeardGraceUs : kGraceUs;
  const bool is_wanted = is_forced || now_us >= leader_seen_us_ + grace_us;
  const bool may_change = !state_.calls.is_changing() && state_.fault != TopologyFault::kOlder;
  if (!is_wanted || !may_change || !can_stand(shard, now_us)) return election_.cancel();
  if (election_.is_idle()) {
    if (now_us < stand_again_us_) return;
    ask_peers(shard, is_forced, now_us);
  }
  if (!election_.is_due(state_.facts.position, now_us)) return;
  yields_to_leader(now_us) ? refused(now_us) : stand(shard);
}

// Returns whether this node still delays its takeover. The takeover is delayed for a limited time
// if the leader in the topology has answered that the leader has all data of this node. After a
// power cut of both nodes, that leader may need longer than this node to register in etcd again.
bool ReplicaPart::yields_to_leader(int64_t now_us) {
  if (!leader_has_all_) return false;
  if (yielding_since_us_ == 0) yielding_since_us_ = now_us;
  return now_us < yielding_since_us_ + kYieldAsks * state_.options.times.ask_us;
}

void ReplicaPart::ask_peers(const Shard& shard, bool is_forced, int64_t now_us) {
  leader_has_all_ = false;
  std::vector<std::string> peers;
  for (const std::string& id : shard.insync) {
    // The leader is no longer registered in etcd. If this process was connected to that leader,
    // this node lacks at most the leader's last writes, so it need not ask the leader.
    const bool is_asked = id != shard.leader || !has_connected_;
    if (id != state_.options.id && is_asked && !is_forced) peers.push_back(id);
  }
  election_.begin(state_.calls.next_call(), peers, now_us);
  for (const std::string& peer : peers) {
    state_.actions.emplace_back(AskOffset{election_.call(), peer, shard.name});
  }
}

void ReplicaPart::stand(const Shard& shard) {
  ChangeTopology change{0, state_.topology.revision, state_.topology.topology};
  if (leader_is_gone(shard)) change.gone = shard.leader;
  change.needs_own_alive = true;
  Shard& next = *change.topology.shard(shard.name);
  // The other members in sync may lack the last bytes of the old leader's stream, as they might
  // before the takeover. So the takeover is no reason to remove them from `insync`.
  std::erase(next.insync, shard.leader);
  next.leader = state_.options.id;
  next.epoch = std::max(shard.epoch, state_.kept.epoch()) + 1;
  state_.calls.change(std::move(change));
}

void ReplicaPart::offset_answered(uint64_t call, std::string_view peer,
                                  std::optional<HistoryPosition> position) {
  const Shard* shard = state_.shard();
  if (shard != nullptr && peer == shard->leader) {
    const bool has_all = position && *position >= state_.facts.position;
    if (call == election_.call()) leader_has_all_ = has_all;
    return election_.failed(call, peer);
  }
  position ? election_.answered(call, peer, *position) : election_.failed(call, peer);
}

bool ReplicaPart::promise(const Shard& shard, uint64_t epoch, int64_t now_us) {
  if (state_.calls.is_changing()) return false;
  if (epoch < shard.epoch || epoch < state_.kept.epoch()) return false;
  if (epoch > shard.epoch + kEpochsAhead) return false;
  if (epoch > state_.kept.epoch()) {
    // This node refuses the promise until it has the leader's epoch on its disk. The leader will
    // ask again.
    state_.kept.want(epoch);
    return false;
  }
  leader_has_lived_ = true;
  promised_until_us_ = std::max(promised_until_us_, now_us + state_.options.times.promise_us);
  election_.cancel();
  return true;
}

core::Result<> ReplicaPart::take_over(const Shard& shard, int64_t now_us) {
  if (!shard.is_insync(state_.options.id) || !state_.facts.has_whole_copy) {
    return core::Error{"ERR the node is not in sync with the leader of its shard"};
  }
  if (!state_.facts.log_works) return core::Error{kLogOfNodeFails};
  forced_until_us_ = now_us + kForceUs;
  return {};
}

}  // namespace server::cluster
