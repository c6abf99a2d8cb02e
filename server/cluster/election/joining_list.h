// SPDX-License-Identifier: MIT
//
// JoiningList: the members that are about to join the list `insync` of a leader. The replies of
// this leader to writes wait for all members in sync.
//
// A member joins in three steps, so that it has every acknowledged write when etcd lists it:
//
//   in `wanted` ──► replies wait for the member ──► goal := end of stream ──► goal acknowledged
//
// The goal is an offset in the stream. Every write whose reply did not wait for the member ends at
// or before the goal. The replies to all later writes wait for the member.
//
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/cluster/election/member_actions.h"

namespace server::cluster {

class JoiningList {
 public:
  void clear() { members_.clear(); }
  // Returns the joining members. Replies to writes must wait for the acknowledgements of these
  // members, too.
  std::vector<std::string> ids() const;
  // Returns the list of members in sync that the leader may write to etcd now. It is `wanted`
  // without the new members that have not yet acknowledged enough of the stream. `tick` is the
  // serial number of `facts`. After each call, the owner must make replies wait for the members of
  // ids(), before it collects the next ReplicationFacts.
  std::vector<std::string> step(const Shard& shard, std::vector<std::string> wanted,
                                const ReplicationFacts& facts, uint64_t tick);

 private:
  struct Progress {
    uint64_t tick = 0;  // the `tick` of the first step() with this member in `wanted`
    std::optional<uint64_t> goal;
  };

  std::map<std::string, Progress> members_;
};

}  // namespace server::cluster
