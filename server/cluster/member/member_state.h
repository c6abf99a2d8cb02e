// SPDX-License-Identifier: MIT
//
// MemberState: the state that a Member's two parts share, LeaderPart and ReplicaPart.
//
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/cluster/member/joining_list.h"
#include "server/cluster/member/kept_epoch.h"
#include "server/cluster/member/member_actions.h"
#include "server/cluster/member/permit.h"
#include "server/cluster/member/topology_calls.h"
#include "server/cluster/topology.h"

namespace server::cluster {

using IdSet = std::set<std::string, std::less<>>;

struct MemberOptions {
  std::string id;
  PermitTimes times;
  int64_t started_us = 0;
  // The last kept epoch, from cluster.json.
  std::string kept_shard = {};
  uint64_t kept_epoch = 0;
  // cluster-write-acks insync: replies to writes wait for Member::required_acks().
  bool awaits_acks = false;
};

// How this node treats a command on its slots.
enum class MemberService : uint8_t {
  kNone,  // this node does not lead
  kServes,
  kWaits,  // this node or another one serves soon
  kDown,   // no permit
};

struct MemberState {
  explicit MemberState(MemberOptions member_options)
      : options(std::move(member_options)),
        kept(options.kept_shard, options.kept_epoch),
        calls(actions, options.times.ask_us) {}
  MemberState(const MemberState&) = delete;
  MemberState& operator=(const MemberState&) = delete;

  // The shard of this node; null for none.
  const Shard* shard() const { return topology.topology.shard_of(options.id); }

  const MemberOptions options;
  std::vector<MemberAction> actions;
  TopologyVersion topology;
  TopologyFault fault = TopologyFault::kNone;  // of the topology in etcd
  std::optional<IdSet> alive;                  // nullopt: not known yet
  ReplicationFacts facts;
  uint64_t tick = 0;  // number of the facts
  JoiningList joining;
  KeptEpoch kept;
  TopologyCalls calls;
};

}  // namespace server::cluster
