// SPDX-License-Identifier: MIT
#include "server/cluster/election/insync_list.h"

#include <algorithm>

namespace server::cluster {

void InsyncList::begin(const Shard& shard, int64_t now_us) {
  members_.clear();
  for (const std::string& id : shard.insync) progress_of(id, now_us);
}

InsyncList::Progress& InsyncList::progress_of(const std::string& id, int64_t now_us) {
  const auto found = std::ranges::find(members_, id, &Progress::id);
  if (found != members_.end()) return *found;
  members_.push_back({.id = id, .caught_up_us = now_us});
  return members_.back();
}

void InsyncList::look(const Shard& shard, const ReplicationFacts& facts, int64_t now_us) {
  std::erase_if(members_, [&](const Progress& member) { return !shard.has_member(member.id); });
  for (Progress& member : members_) {
    member.has_left = member.has_left || member.is_online;
    member.is_online = false;
  }
  for (const ReplicationFacts::Replica& replica : facts.replicas) {
    if (!shard.has_member(replica.id)) continue;
    Progress& member = progress_of(replica.id, now_us);
    // A replica may have two links while its old link has not ended yet. Only its online link is
    // used.
    if (!replica.is_online || member.is_online) continue;
    if (!replica.log_works) {
      member.has_left = true;
      continue;
    }
    member.is_online = true;
    member.has_left = false;
    if (member.has_goal && replica.acked >= member.goal) {
      member.caught_up_us = member.goal_us;
      member.has_caught_up = true;
      member.has_goal = false;
    }
    if (!member.has_goal) {
      member.has_goal = true;
      member.goal = facts.position.offset;
      member.goal_us = now_us;
    }
  }
  for (Progress& member : members_) {
    if (!member.is_online) member.has_goal = false;
  }
}

std::vector<std::string> InsyncList::wanted(const Shard& shard, int64_t now_us) const {
  std::vector<std::string> ids;
  for (const std::string& id : shard.members) {
    const auto member = std::ranges::find(members_, id, &Progress::id);
    const bool is_known = member != members_.end();
    const int64_t lag_us = is_known ? now_us - member->caught_up_us : 0;
    const bool stays =
        is_known && shard.is_insync(id) && !member->has_left && lag_us <= leave_lag_us_;
    const bool joins =
        is_known && member->is_online && member->has_caught_up && lag_us <= join_lag_us_;
    if (id == shard.leader || stays || joins) ids.push_back(id);
  }
  return ids;
}

}  // namespace server::cluster
