// SPDX-License-Identifier: MIT
//
// Plans: the topologies that bloomery-cluster writes, made without asking anybody.
//
// Invariants: what is returned is a topology that check_topology() accepts: no slot without an
// owner, no shard without a leader.
// Thread safety: pure functions.
// Source: docs/cluster.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/cluster/topology.h"

namespace server::cluster {

struct Address {
  std::string host;
  uint16_t port = 0;

  bool operator==(const Address&) const = default;
  std::string text() const;
};

// "HOST:PORT", an IPv6 address in brackets or without: the last colon counts.
core::Result<Address> parse_address(std::string_view text);

// Null where no node has this address.
const Node* node_at(const Topology& topology, const Address& address);

// The first nodes.size() / (replicas + 1) lead a shard each, s1, s2 and so on, with equal numbers
// of slots; the others are dealt to the shards in turn. Replicas are not in sync yet.
core::Result<Topology> plan_create(std::vector<Node> nodes, unsigned replicas);

// The node becomes a replica of the shard; of that with the fewest members if `shard` is empty.
core::Result<Topology> plan_add(Topology topology, Node node, std::string_view shard);

// Errors: a leader is not removed.
core::Result<Topology> plan_remove(Topology topology, const Address& address);

// Who is asked to take over: the node at `to`, or the first in sync of those alive.
struct FailoverTarget {
  Node node;
  std::string shard;
};
core::Result<FailoverTarget> plan_failover(const Topology& topology,
                                           const std::vector<std::string>& alive,
                                           std::string_view shard, const Address* to, bool force);

}  // namespace server::cluster
