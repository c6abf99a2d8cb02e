// SPDX-License-Identifier: MIT
#include "server/cluster/election/member.h"

#include "server/cluster/election/leader_part.h"
#include "server/cluster/election/replica_part.h"

namespace server::cluster {

Member::Member(MemberOptions options)
    : state_(std::move(options)),
      leader_(std::make_unique<LeaderPart>(state_)),
      replica_(std::make_unique<ReplicaPart>(state_)) {}

Member::~Member() = default;

bool Member::leads() const {
  return leader_->epoch() != 0;
}

const Permit& Member::permit() const {
  return leader_->permit();
}

MemberService Member::service(int64_t now_us) const {
  if (!leads() && succession_.holds_clients(now_us)) return MemberService::kWaits;
  return leader_->service(now_us);
}

bool Member::etcd_answers(int64_t now_us) const {
  return leader_->etcd_answers(now_us);
}

void Member::tick(int64_t now_us, const ReplicationFacts& facts) {
  state_.facts = facts;
  ++state_.tick;
  step(now_us);
}

void Member::topology_seen(int64_t now_us, const TopologyVersion& seen) {
  adopt(now_us, seen);
  step(now_us);
}

void Member::alive_seen(int64_t now_us, IdSet ids) {
  state_.alive = std::move(ids);
  step(now_us);
}

void Member::adopt(int64_t now_us, const TopologyVersion& seen, Writer writer) {
  if (!supersedes(seen, state_.topology)) return;
  bool must_renew = state_.topology.revision == 0;
  // A lower or equal revision means that etcd was restored. An earlier request is never executed
  // after the restore, so the pending change counts as refused.
  if (seen.revision <= state_.topology.revision) state_.calls.refused();
  state_.fault = TopologyFault::kNone;
  puts_back_ = false;
  const Shard before = state_.shard() == nullptr ? Shard{} : *state_.shard();
  state_.topology = seen;
  state_.calls.seen(seen.revision);
  replica_->reset();
  const Shard* now = state_.shard();
  const bool moved = now == nullptr || before.name != now->name;
  if (now != nullptr) state_.kept.join(now->name);
  const bool is_handed_over = !moved && leader_->has_resigned() &&
                              now->leader != state_.options.id && now->epoch == before.epoch + 1;
  if (is_handed_over) succession_.handed_over(before.epoch, now_us);
  succession_.epoch_seen(now == nullptr ? 0 : now->epoch);
  if (now != nullptr && now->leader == state_.options.id) {
    if (!moved && leader_->epoch() == now->epoch) return;
    const MemberOptions& options = state_.options;
    must_renew |= now->name == options.kept_shard && now->epoch <= options.kept_epoch;
    if (writer == Writer::kUnknown) {
      must_renew |=
          now_us >= state_.facts.present_until_us || (!moved && before.leader == options.id);
    }
    state_.actions.emplace_back(Promote{must_renew ? 0 : now->epoch});
    replica_->led();
    return leader_->start(*now, must_renew, now_us);
  }
  leader_->stop();
  if (now == nullptr) {
    if (!before.name.empty()) state_.actions.emplace_back(Follow{});
  } else if (now->epoch < state_.kept.epoch()) {
    // The topology is old, so this node does not follow the leader that the topology names. That
    // leader's data would replace data that a later leader has acknowledged.
  } else if (moved || before.leader != now->leader || before.epoch != now->epoch) {
    state_.actions.emplace_back(Follow{now->leader, now->epoch});
  }
  leader_->end_handover();
}

void Member::epoch_kept(int64_t now_us, std::string_view shard, uint64_t epoch) {
  state_.kept.kept(shard, epoch);
  step(now_us);
}

void Member::resigned(int64_t now_us, std::string_view shard, uint64_t epoch) {
  leader_->resigned(shard, epoch, now_us);
  const Shard* own = state_.shard();
  const bool is_own = own != nullptr && own->name == shard && own->epoch == epoch;
  if (is_own && !leads()) succession_.named(epoch, now_us);
  step(now_us);
}

void Member::successor_serves(int64_t now_us, std::string_view shard, uint64_t epoch) {
  const Shard* own = state_.shard();
  if (own != nullptr && own->name == shard) succession_.successor_serves(epoch);
  step(now_us);
}

void Member::topology_read(int64_t now_us, uint64_t call, ReadOutcome outcome,
                           const TopologyVersion& newer) {
  const auto read = state_.calls.take_read(call);
  if (!read || !is_sound(read->known_revision, outcome, newer)) return step(now_us);
  if (outcome == ReadOutcome::kUnchanged) {
    state_.calls.unchanged(read->known_revision);
    leader_->confirmed(read->led_epoch, read->sent_us);
  } else {
    adopt(now_us, newer);
    const Shard* reported = newer.topology.shard_of(state_.options.id);
    if (reported != nullptr && reported->leader == state_.options.id) {
      leader_->confirmed(reported->epoch, read->sent_us);
    }
  }
  step(now_us);
}

void Member::topology_checked(int64_t now_us, uint64_t known_revision, ReadOutcome outcome,
                              const TopologyVersion& newer) {
  if (is_sound(known_revision, outcome, newer) && outcome == ReadOutcome::kChanged) {
    adopt(now_us, newer);
  }
  step(now_us);
}

bool Member::is_sound(uint64_t known_revision, ReadOutcome outcome, const TopologyVersion& newer) {
  if (outcome == ReadOutcome::kUnknown) return false;
  if (outcome == ReadOutcome::kAbsent) {
    // No topology was known when the read was sent. The known topology may have been written after
    // the read. So the answer does not prove that the topology is absent now.
    if (known_revision == 0) return false;
    state_.calls.absent();
    state_.fault = TopologyFault::kAbsent;
    return false;
  }
  if (outcome == ReadOutcome::kInvalid) {
    state_.fault = TopologyFault::kInvalid;
    return false;
  }
  // The answer to a slow read may show a topology that was superseded before the answer arrived.
  const bool is_late =
      known_revision <= newer.revision && newer.revision <= state_.topology.revision;
  if (outcome == ReadOutcome::kChanged && !is_late && !supersedes(newer, state_.topology)) {
    state_.fault = TopologyFault::kOlder;
    // etcd was restored. A pending takeover cannot succeed, because it depends on a revision that
    // etcd has lost. It is dropped, because during a takeover this node makes no promises to a
    // leader.
    if (!leads()) state_.calls.refused();
    return false;
  }
  state_.fault = TopologyFault::kNone;
  return true;
}

void Member::topology_deleted(int64_t now_us) {
  if (state_.topology.revision == 0) return;
  state_.calls.absent();
  state_.fault = TopologyFault::kAbsent;
  puts_back_ = true;
  step(now_us);
}

void Member::put_back(int64_t now_us) {
  if (!puts_back_ || state_.calls.is_changing() || now_us < put_again_us_) return;
  put_again_us_ = now_us + state_.options.times.ask_us;
  ChangeTopology change{0, 0, state_.topology.topology};
  change.needs_own_alive = true;
  state_.calls.change(std::move(change));
}

void Member::topology_changed(int64_t now_us, uint64_t call, ChangeOutcome outcome,
                              uint64_t revision) {
  const auto change = state_.calls.answered(call);
  if (!change) return;
  if (outcome == ChangeOutcome::kCommitted) {
    adopt(now_us, {change->topology, revision}, Writer::kSelf);
  } else if (outcome == ChangeOutcome::kRefused) {
    state_.calls.refused();
    replica_->refused(now_us);
  } else {
    state_.calls.unknown(now_us);
  }
  step(now_us);
}

void Member::promise_answered(int64_t now_us, uint64_t call, std::string_view peer,
                              bool is_promised) {
  leader_->promise_answered(call, peer, is_promised);
  step(now_us);
}

void Member::offset_answered(int64_t now_us, uint64_t call, std::string_view peer,
                             std::optional<HistoryPosition> position) {
  const Shard* own = state_.shard();
  if (own != nullptr && leads()) {
    leader_->offset_answered(call, peer, position);
    if (search_.accepts(call, position)) (void)leader_->hand_over(*own, peer, now_us);
  } else {
    replica_->offset_answered(call, peer, position);
  }
  step(now_us);
}

void Member::writes_held(int64_t now_us, uint64_t handover, uint64_t offset) {
  leader_->writes_held(handover, offset);
  step(now_us);
}

void Member::step(int64_t now_us) {
  const Shard* own = state_.shard();
  if (own == nullptr) return;
  state_.kept.want(own->epoch);
  state_.kept.step(now_us, state_.actions);
  state_.calls.step(now_us, leader_->epoch(), state_.topology.revision);
  if (leads()) {
    put_back(now_us);
    search_.step(*own, now_us);
  }
  leads() ? leader_->step(*own, now_us) : replica_->step(*own, now_us);
}

bool Member::promise(int64_t now_us, std::string_view shard, uint64_t epoch) {
  const Shard* own = state_.shard();
  if (own == nullptr || own->name != shard || leads()) return false;
  const bool is_promised = replica_->promise(*own, epoch, now_us);
  step(now_us);
  return is_promised;
}

std::optional<HistoryPosition> Member::offset(int64_t now_us, std::string_view shard) {
  const Shard* own = state_.shard();
  if (own == nullptr || own->name != shard) return std::nullopt;
  if (!leads()) replica_->was_asked(*own);
  const bool may_lead =
      leads() ? leader_->may_return(*own, now_us) : replica_->can_stand(*own, now_us);
  if (!may_lead) return std::nullopt;
  return state_.facts.position;
}

core::Result<> Member::hand_over(int64_t now_us, std::string_view target) {
  const Shard* own = state_.shard();
  return leader_->hand_over(own == nullptr ? Shard{} : *own, target, now_us);
}

std::string Member::successor() const {
  const Shard* own = state_.shard();
  return own == nullptr ? "" : leader_->successor(*own);
}

core::Result<> Member::take_over(int64_t now_us) {
  const Shard* own = state_.shard();
  if (own == nullptr || leads()) {
    return core::Error{std::string(kFailoverNeedsReplica)};
  }
  const auto begun = replica_->take_over(*own, now_us);
  step(now_us);
  return begun;
}

bool Member::has_lost_data(int64_t now_us) const {
  const Shard* own = state_.shard();
  return own != nullptr && leader_->has_lost_data(*own, now_us);
}

IdSet Member::required_acks() const {
  const Shard* own = state_.shard();
  if (own == nullptr || !leads() || !state_.options.awaits_acks) return {};
  IdSet ids = leader_->possible_successors(*own);
  for (std::string& id : state_.joining.ids()) ids.insert(std::move(id));
  return ids;
}

void Member::close_list(int64_t now_us, uint64_t offset) {
  leader_->close_list(offset, now_us);
  step(now_us);
}

bool Member::may_leave() const {
  const Shard* own = state_.shard();
  return own == nullptr || !leads() || leader_->is_list_closed(*own);
}

}  // namespace server::cluster
