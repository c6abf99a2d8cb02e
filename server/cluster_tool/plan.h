// SPDX-License-Identifier: MIT
//
// Plans: compute the topologies that bloomery-cluster writes, without a request to any server.
//
// Invariants: check_topology() accepts every returned topology: each slot has an owner, and each
// shard has a leader.
// Thread safety: pure functions.
// Source: docs/cluster.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/base/config/host.h"
#include "server/cluster/topology.h"

namespace server::cluster {

struct Address {
  std::string host;
  uint16_t port = 0;

  bool operator==(const Address&) const = default;
  std::string text() const { return host_and_port(host, port); }
};

// Parses "HOST:PORT". An IPv6 address may have brackets or none: the last colon separates the port.
core::Result<Address> parse_address(std::string_view text);

// Returns the node with this address; null if there is none.
const Node* node_at(const Topology& topology, const Address& address);

// Plans a new cluster. The first nodes.size() / (replicas + 1) nodes lead a shard each: s1, s2 and
// so on, with nearly equal numbers of slots. The other nodes are assigned to the shards in turn.
// Replicas are not in sync yet.
core::Result<Topology> plan_create(std::vector<Node> nodes, unsigned replicas);

// Makes the node a replica of the shard. If `shard` is empty, the shard with the fewest members is
// used. A server that restarts with an empty directory has a new id. So the new node replaces a
// member that has the same address and is not among `alive`.
core::Result<Topology> plan_add(Topology topology, const std::vector<std::string>& alive, Node node,
                                std::string_view shard);

// Removes the node at the address. Errors: the node is a leader, or is unknown.
core::Result<Topology> plan_remove(Topology topology, const Address& address);

// Makes the node the leader of a shard that has lost its data. Members that are not alive leave the
// shard. Otherwise they would replace their data by those of the new leader when they return.
// Errors: a member in sync is alive, so the data are not lost.
core::Result<Topology> plan_replace(Topology topology, const std::vector<std::string>& alive,
                                    Node node, std::string_view shard);

// Returns the node that is asked to take over: the node at the address `to`. If `to` is null, it is
// the first live member in sync.
core::Result<Node> plan_failover(const Topology& topology, const std::vector<std::string>& alive,
                                 std::string_view shard, const Address* to, bool force);

}  // namespace server::cluster
