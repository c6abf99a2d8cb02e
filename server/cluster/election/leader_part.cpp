// SPDX-License-Identifier: MIT
#include "server/cluster/election/leader_part.h"

#include <algorithm>
#include <utility>

namespace server::cluster {
namespace {

constexpr int64_t kHandoverUs = 1'000'000;
// The largest lag with which a replica may join the list of members in sync. This lag must exceed
// one second, the interval at which a replica acknowledges.
constexpr int64_t kJoinLagUs = 2'000'000;
constexpr int64_t kLeaveLagMinUs = 5'000'000;
constexpr int64_t kTimeoutAsks = 10;  // cluster-node-timeout in units of PermitTimes::ask_us

// The time for which clients wait after the leader's permit has ended. After this time they get
// CLUSTERDOWN. A permit may end because the process was paused, or because the leader got a late
// answer to its request. In both cases the leader normally extends the permit within this time.
constexpr int64_t kLapseAsks = 4;
// If the process is paused for at most this time, the leader ignores the pause. The unit is
// PermitTimes::ask_us. The node's lease does not end within this time.
constexpr int64_t kPauseAsks = 5;

// Returns how long etcd must be silent before this node treats it as unavailable.
int64_t silence_us(const PermitTimes& times) {
  return 5 * times.ask_us / 2;
}

int64_t leave_lag_us(const PermitTimes& times) {
  return std::max(2 * kTimeoutAsks * times.ask_us, kLeaveLagMinUs);
}

}  // namespace

LeaderPart::LeaderPart(MemberState& state)
    : state_(state),
      permit_(state.options.times),
      insync_(kJoinLagUs, leave_lag_us(state.options.times)),
      return_check_(state) {}

void LeaderPart::start(const Shard& shard, bool must_renew, int64_t now_us) {
  permit_.give_up();
  epoch_ = shard.epoch;
  needs_new_epoch_ = must_renew;
  begun_us_ = now_us;
  lapsed_us_ = 0;
  etcd_confirmed_us_ = 0;
  next_read_us_ = now_us;
  stepped_us_ = now_us;
  promises_.reset();
  insync_.begin(shard, now_us);
  return_check_.begin(now_us);
  state_.joining.clear();
  end_handover();
  open_permit();
}

void LeaderPart::stop() {
  permit_.give_up();
  epoch_ = 0;
  promises_.reset();
}

void LeaderPart::open_permit() {
  if (epoch_ == 0 || permit_.is_held() || needs_new_epoch_) return;
  if (state_.kept.epoch() != epoch_ || state_.facts.led_epoch != epoch_) return;
  const bool has_resigned = resigned_shard_ == state_.kept.shard();
  if (has_resigned && resigned_epoch_ == epoch_) return;
  const bool waits = !has_resigned || resigned_epoch_ + 1 != epoch_;
  return_check_.led();
  permit_.begin(epoch_, begun_us_ + (waits ? state_.options.times.wait_us : 0));
  // The next read of the topology is due now, so that etcd confirms this leader's permit soon.
  next_read_us_ = begun_us_;
}

void LeaderPart::resigned(std::string_view shard, uint64_t epoch, int64_t now_us) {
  if (shard == resigned_shard_ && epoch <= resigned_epoch_) return;
  resigned_shard_ = shard;
  resigned_epoch_ = epoch;
  if (shard == state_.kept.shard() && epoch + 1 == epoch_) permit_.skip_wait(now_us);
}

void LeaderPart::confirmed(uint64_t epoch, int64_t sent_us) {
  if (epoch_ == 0 || epoch != epoch_ || !permit_.is_held()) return;
  permit_.confirm(sent_us);
  etcd_confirmed_us_ = std::max(etcd_confirmed_us_, sent_us);
}

bool LeaderPart::etcd_answers(int64_t now_us) const {
  return etcd_confirmed_us_ != 0 && now_us - etcd_confirmed_us_ < silence_us(state_.options.times);
}

bool LeaderPart::has_lost_data(const Shard& shard, int64_t now_us) const {
  return epoch_ != 0 && needs_new_epoch_ && return_check_.has_lost_data(shard, now_us);
}

bool LeaderPart::may_return(const Shard& shard, int64_t now_us) const {
  return epoch_ != 0 && needs_new_epoch_ && shard.epoch >= state_.kept.epoch() &&
         state_.facts.has_whole_copy && return_check_.has_log_or_is_alone(shard, now_us);
}

MemberService LeaderPart::service(int64_t now_us) const {
  if (epoch_ == 0) return MemberService::kNone;
  if (permit_.allows(now_us)) return MemberService::kServes;
  if (handover_.state == Handover::State::kResigned) return MemberService::kWaits;
  if (permit_.from_us() <= now_us && permit_.until_us() != 0) {
    const bool is_new =
        lapsed_us_ == 0 || now_us < lapsed_us_ + kLapseAsks * state_.options.times.ask_us;
    return is_new ? MemberService::kWaits : MemberService::kDown;
  }
  const bool has_just_begun = now_us < begun_us_ + state_.options.times.wait_us;
  return has_just_begun ? MemberService::kWaits : MemberService::kDown;
}

void LeaderPart::record_pause(int64_t now_us) {
  if (now_us - stepped_us_ > kPauseAsks * state_.options.times.ask_us) resumed_us_ = now_us;
  stepped_us_ = now_us;
}

void LeaderPart::record_lapse(int64_t now_us) {
  if (permit_.allows(now_us)) {
    lapsed_us_ = 0;
  } else if (lapsed_us_ == 0 && permit_.until_us() != 0 && permit_.from_us() <= now_us) {
    lapsed_us_ = now_us;
  }
}

void LeaderPart::step(const Shard& shard, int64_t now_us) {
  open_permit();
  record_pause(now_us);
  record_lapse(now_us);
  return_check_.look_at_others(shard, now_us);
  insync_.look(shard, state_.facts, now_us);
  if (closing_) closing_->is_done = is_list_closed(shard);
  if (now_us >= next_read_us_) {
    next_read_us_ = now_us + state_.options.times.ask_us;
    state_.calls.read(now_us, epoch_, state_.topology.revision);
  }
  if (state_.kept.epoch() > epoch_) needs_new_epoch_ = true;
  if (needs_new_epoch_) {
    return_check_.step(shard, now_us);
    if (!state_.calls.is_changing() && !has_lost_data(shard, now_us)) renew(shard, now_us);
    return;
  }
  step_handover(shard, now_us);
  if (!permit_.is_held()) return;
  if (!etcd_answers(now_us)) return step_promises(shard, now_us);
  promises_.reset();
  step_insync(shard, now_us);
}

void LeaderPart::renew(const Shard& shard, int64_t now_us) {
  if (now_us >= state_.facts.present_until_us || now_us < renew_again_us_) return;
  // A topology whose epoch is below the epoch on this node's disk is old. This node must not write
  // such a topology back with a new epoch.
  if (shard.epoch < state_.kept.epoch()) return;
  // After a restore of etcd, `bloomery-cluster recover` may store another topology at the revision
  // that this node knows. This node must not overwrite that topology.
  if (state_.fault == TopologyFault::kOlder) return;
  renew_again_us_ = now_us + state_.options.times.ask_us / 4;
  ChangeTopology change{0, state_.topology.revision, state_.topology.topology};
  change.needs_own_alive = true;
  change.topology.shard(shard.name)->epoch = std::max(shard.epoch, state_.kept.epoch()) + 1;
  state_.calls.change(std::move(change));
}

IdSet LeaderPart::possible_successors(const Shard& shard) const {
  IdSet ids(shard.insync.begin(), shard.insync.end());
  // If etcd was restored from a backup, the list of members in sync may be outdated. So every
  // member of the shard counts as a possible successor.
  if (state_.fault == TopologyFault::kOlder) {
    ids.insert(shard.members.begin(), shard.members.end());
  }
  if (const ChangeTopology* change = state_.calls.changing(); change != nullptr) {
    const Shard* asked_for = change->topology.shard(shard.name);
    if (asked_for != nullptr) ids.insert(asked_for->insync.begin(), asked_for->insync.end());
  }
  ids.erase(state_.options.id);
  return ids;
}

void LeaderPart::step_promises(const Shard& shard, int64_t now_us) {
  // Until etcd has confirmed this epoch, another leader may have changed the list of members in
  // sync. A member that is not on the list that this node knows might then take over. So the
  // promises of the members on this list prove nothing yet.
  if (etcd_confirmed_us_ == 0) return;
  IdSet peers = possible_successors(shard);
  if (peers.empty()) {
    // No other member of the shard can take over. Only another process with this node's id could
    // lead, and etcd would report that process. So if this process was suspended, it confirms the
    // permit only after silence_us(), the time in which etcd would answer.
    if (now_us - resumed_us_ >= silence_us(state_.options.times)) permit_.confirm(now_us);
    return;
  }
  if (promises_ && now_us < promises_->sent_us + state_.options.times.ask_us) return;
  promises_ = Promises{state_.calls.next_call(), now_us, std::move(peers)};
  for (const std::string& peer : promises_->missing) {
    state_.actions.emplace_back(AskPromise{promises_->call, peer, shard.name, epoch_});
  }
}

void LeaderPart::promise_answered(uint64_t call, std::string_view peer, bool is_promised) {
  if (!promises_ || promises_->call != call || !permit_.is_held() || !is_promised) return;
  const auto found = promises_->missing.find(peer);
  if (found == promises_->missing.end()) return;
  promises_->missing.erase(found);
  if (promises_->missing.empty()) permit_.confirm(promises_->sent_us);
}

void LeaderPart::step_insync(const Shard& shard, int64_t now_us) {
  if (state_.calls.is_changing() || handover_.state != Handover::State::kNone) return;
  if (!permit_.allows(now_us)) return;
  std::vector<std::string> wanted;
  if (!closing_) {
    wanted = insync_.wanted(shard, now_us);
  } else {
    if (closing_->is_done || now_us >= closing_->begun_us + kCloseListUs) return;
    const bool may_ack = now_us < closing_->begun_us + kLastAckUs;
    wanted = list_of_acked(shard, may_ack ? 0 : closing_->offset);
  }
  if (state_.options.awaits_acks) {
    wanted = state_.joining.step(shard, std::move(wanted), state_.facts, state_.tick);
  }
  // The comparison ignores the order of the ids, because a different order is not worth a write to
  // etcd.
  if (std::ranges::is_permutation(wanted, shard.insync)) return;
  ChangeTopology change{0, state_.topology.revision, state_.topology.topology};
  change.topology.shard(shard.name)->insync = std::move(wanted);
  state_.calls.change(std::move(change));
}

void LeaderPart::close_list(uint64_t offset, int64_t now_us) {
  closing_ = Closing{offset, now_us};
}

std::vector<std::string> LeaderPart::list_of_acked(const Shard& shard, uint64_t offset) const {
  std::vector<std::string> ids;
  for (const std::string& id : shard.members) {
    const bool stays = shard.is_insync(id) && state_.facts.has_acknowledged(id, offset);
    if (id == shard.leader || stays) ids.push_back(id);
  }
  return ids;
}

bool LeaderPart::is_list_closed(const Shard& shard) const {
  if (!closing_) return false;
  return closing_->is_done ||
         (!state_.calls.is_changing() &&
          std::ranges::is_permutation(list_of_acked(shard, closing_->offset), shard.insync));
}

core::Result<> LeaderPart::hand_over(const Shard& shard, std::string_view target, int64_t now_us) {
  if (epoch_ == 0) return core::Error{"ERR this node does not lead its shard"};
  if (handover_.state != Handover::State::kNone) {
    return core::Error{"ERR the shard is being handed over already"};
  }
  if (target == state_.options.id || !shard.is_insync(target)) {
    return core::Error{"ERR the node is not in sync with the leader of its shard"};
  }
  if (state_.facts.reports_failing_log(target)) return core::Error{kLogOfNodeFails};
  if (!permit_.allows(now_us) || !etcd_answers(now_us)) {
    return core::Error{"ERR the leader has no answer from etcd at present"};
  }
  if (state_.calls.is_changing()) {
    return core::Error{"ERR the topology is being changed, try again"};
  }
  handover_ = {Handover::State::kHoldsWrites, std::string(target), 0, now_us + kHandoverUs,
               handover_.number + 1};
  state_.actions.emplace_back(HoldWrites{handover_.number});
  return {};
}

std::string LeaderPart::successor(const Shard& shard) const {
  const ReplicationFacts::Replica* best = nullptr;
  for (const auto& replica : state_.facts.replicas) {
    if (!replica.keeps_stream() || !shard.is_insync(replica.id)) continue;
    if (best == nullptr || replica.acked > best->acked) best = &replica;
  }
  return best == nullptr ? "" : best->id;
}

void LeaderPart::writes_held(uint64_t handover, uint64_t offset) {
  // A cancelled handover may report its end during a later one, whose writes still run.
  if (handover != handover_.number || handover_.state != Handover::State::kHoldsWrites) return;
  handover_.state = Handover::State::kAwaitsReplica;
  handover_.offset = offset;
}

void LeaderPart::step_handover(const Shard& shard, int64_t now_us) {
  using State = Handover::State;
  if (handover_.state == State::kNone || state_.calls.is_changing()) return;
  const bool may_follow =
      shard.is_insync(handover_.target) && !state_.facts.reports_failing_log(handover_.target);
  if (handover_.state == State::kResigned) {
    // This node has resigned, but etcd has refused the handover, because the topology had changed
    // since this node read it. The change was of another shard, so the handover is tried again.
    // This node must not serve in the resigned epoch, so later it leads in a new one.
    const bool tries_again =
        may_follow && now_us < handover_.deadline_us && state_.fault == TopologyFault::kNone;
    return tries_again ? name_successor(shard) : renew(shard, now_us);
  }
  if (now_us >= handover_.deadline_us || !may_follow) {
    end_handover();
  } else if (handover_.state == State::kAwaitsReplica &&
             state_.facts.has_acknowledged(handover_.target, handover_.offset)) {
    resign(shard);
  }
}

void LeaderPart::resign(const Shard& shard) {
  handover_.state = Handover::State::kResigned;
  permit_.give_up();
  resigned_shard_ = shard.name;
  resigned_epoch_ = epoch_;
  state_.actions.emplace_back(ReportResigned{handover_.target, shard.name, epoch_});
  name_successor(shard);
}

void LeaderPart::name_successor(const Shard& shard) {
  ChangeTopology change{0, state_.topology.revision, state_.topology.topology};
  Shard& next = *change.topology.shard(shard.name);
  next.leader = handover_.target;
  ++next.epoch;
  state_.calls.change(std::move(change));
}

void LeaderPart::end_handover() {
  if (handover_.state == Handover::State::kNone) return;
  const uint64_t number = handover_.number;
  handover_ = Handover{};
  handover_.number = number;
  state_.actions.emplace_back(ReleaseWrites{});
}

}  // namespace server::cluster
