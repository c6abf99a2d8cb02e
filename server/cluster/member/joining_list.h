// SPDX-License-Identifier: MIT
//
// JoiningList: the members that are about to join the list `insync` of a leader whose replies to
// writes wait for all members in sync.
//
// A member joins in three steps, so that it has every acknowledged write when etcd lists it:
//
//   wanted ──► replies wait for it, too ──► goal: the stream's end ──► has acknowledged the goal
//
// Writes that were acknowledged before the first step lie below the goal. Later ones wait for the
// member.
//
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/cluster/member/member_actions.h"

namespace server::cluster {

class JoiningList {
 public:
  void clear() { members_.clear(); }
  // Returns the joining members, whose acknowledgements replies must wait for, too.
  std::vector<std::string> ids() const;
  // Returns the members of `wanted` that may be in the list now. `wanted` is the list that the
  // leader wants. `tick` is the number of the present set of facts. The owner must update the set
  // of members that replies wait for before it collects the next set of facts.
  std::vector<std::string> step(const Shard& shard, std::vector<std::string> wanted,
                                const ReplicationFacts& facts, uint64_t tick);

 private:
  struct Progress {
    uint64_t tick = 0;  // value of `tick` when the member was first wanted
    std::optional<uint64_t> goal;
  };

  std::map<std::string, Progress> members_;
};

}  // namespace server::cluster
