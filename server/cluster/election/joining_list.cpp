// SPDX-License-Identifier: MIT
#include "server/cluster/election/joining_list.h"

#include <algorithm>

namespace server::cluster {
std::vector<std::string> JoiningList::ids() const {
  std::vector<std::string> all;
  for (const auto& [id, progress] : members_) all.push_back(id);
  return all;
}

std::vector<std::string> JoiningList::step(const Shard& shard, std::vector<std::string> wanted,
                                           const ReplicationFacts& facts, uint64_t tick) {
  std::erase_if(members_, [&](const auto& member) {
    return std::ranges::find(wanted, member.first) == wanted.end() || shard.is_insync(member.first);
  });
  std::erase_if(wanted, [&](const std::string& id) {
    if (shard.is_insync(id)) return false;
    Progress& progress = members_.try_emplace(id, Progress{tick, std::nullopt}).first->second;
    if (progress.goal) return !facts.has_acknowledged(id, *progress.goal);
    if (tick > progress.tick) progress.goal = facts.position.offset;
    return true;
  });
  return wanted;
}

}  // namespace server::cluster
