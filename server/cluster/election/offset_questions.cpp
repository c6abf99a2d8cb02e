// SPDX-License-Identifier: MIT
#include "server/cluster/election/offset_questions.h"

#include <algorithm>

namespace server::cluster {

void ReturnCheck::begin(int64_t now_us) {
  others_missing_us_ = now_us;
  have_no_more_.clear();
  first_call_ = state_.calls.next_call();
  ask_again_us_ = 0;
}

void ReturnCheck::look_at_others(const Shard& shard, int64_t now_us) {
  const bool are_all_there = state_.alive && std::ranges::all_of(shard.insync, [&](const auto& id) {
                               return id == state_.options.id || state_.alive->contains(id);
                             });
  if (!are_all_there) others_missing_us_ = now_us;
}

void ReturnCheck::step(const Shard& shard, int64_t now_us) {
  if (!may_lack_newest(shard, now_us) || now_us < ask_again_us_) return;
  ask_again_us_ = now_us + state_.options.times.ask_us;
  const uint64_t call = state_.calls.next_call();
  for (const std::string& id : shard.insync) {
    if (!is_settled(id)) state_.actions.emplace_back(AskOffset{call, id, shard.name});
  }
}

void ReturnCheck::answered(uint64_t call, std::string_view peer,
                           const std::optional<HistoryPosition>& position) {
  if (call < first_call_ || !position || *position > state_.facts.position) return;
  have_no_more_.emplace(peer);
}

bool ReturnCheck::has_lost_data(const Shard& shard, int64_t now_us) const {
  if (shard.insync.size() < 2) return false;
  // A member that is down may have data that this leader lacks. So a leader without a complete copy
  // of the data counts as having lost data, until all members in sync have been alive for
  // patience_us(). kept_epoch is not checked here, because a node with an empty disk has lost its
  // data but has no kept epoch.
  if (!state_.facts.has_whole_copy) return now_us < others_missing_us_ + patience_us();
  return has_old_snapshot(shard, now_us) || may_lack_newest(shard, now_us);
}

bool ReturnCheck::has_log_or_is_alone(const Shard& shard, int64_t now_us) const {
  return shard.insync.size() < 2 || !has_old_snapshot(shard, now_us);
}

bool ReturnCheck::has_old_snapshot(const Shard& shard, int64_t now_us) const {
  const MemberOptions& options = state_.options;
  return !state_.facts.keeps_log && options.kept_epoch != 0 && options.kept_shard == shard.name &&
         is_new(now_us);
}

bool ReturnCheck::may_lack_newest(const Shard& shard, int64_t now_us) const {
  return !state_.options.is_same_boot && !has_led_ && is_new(now_us) &&
         !std::ranges::all_of(shard.insync, [this](const auto& id) { return is_settled(id); });
}

}  // namespace server::cluster
