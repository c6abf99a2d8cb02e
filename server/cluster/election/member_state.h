// SPDX-License-Identifier: MIT
//
// MemberState: the state that LeaderPart and ReplicaPart share. These two classes implement the
// roles of a Member.
//
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/cluster/election/joining_list.h"
#include "server/cluster/election/kept_epoch.h"
#include "server/cluster/election/member_actions.h"
#include "server/cluster/election/permit.h"
#include "server/cluster/election/topology_calls.h"
#include "server/cluster/topology.h"

namespace server::cluster {

using IdSet = std::set<std::string, std::less<>>;

// The error reply to a request for a failover to a node whose append log fails.
inline constexpr const char* kLogOfNodeFails = "ERR the append log of this node fails";

struct MemberOptions {
  std::string id;
  PermitTimes times;
  int64_t started_us = 0;
  // Shard and epoch that were read from cluster.json at the start.
  std::string kept_shard = {};
  uint64_t kept_epoch = 0;
  // True if the machine has not been restarted since the node wrote kept_epoch. Then the append log
  // on the disk is complete, because only a power cut destroys its unsynced end.
  bool is_same_boot = false;
  // True with `cluster-write-acks insync`: replies to writes wait for Member::required_acks().
  bool awaits_acks = false;
};

// How this node treats a command on the slots of its shard.
enum class MemberService : uint8_t {
  kNone,  // this node does not lead
  kServes,
  kWaits,  // clients wait, because this node or another one will serve soon
  kDown,   // this node leads without a valid permit
};

struct MemberState {
  explicit MemberState(MemberOptions member_options)
      : options(std::move(member_options)),
        kept(options.kept_shard, options.kept_epoch),
        calls(actions, options.times.ask_us) {}
  MemberState(const MemberState&) = delete;
  MemberState& operator=(const MemberState&) = delete;

  // Returns the shard of this node; null if it is in none.
  const Shard* shard() const { return topology.topology.shard_of(options.id); }

  const MemberOptions options;
  std::vector<MemberAction> actions;
  TopologyVersion topology;
  TopologyFault fault = TopologyFault::kNone;  // error in the topology that etcd stores
  std::optional<IdSet> alive;                  // ids of the live nodes; nullopt: not known yet
  ReplicationFacts facts;
  uint64_t tick = 0;  // number of calls of Member::tick(); every call sets `facts`
  JoiningList joining;
  KeptEpoch kept;
  TopologyCalls calls;
};

}  // namespace server::cluster
