// SPDX-License-Identifier: MIT
//
// ClusterStatus: the state of a cluster, as a table for people or as JSON for programs.
//
// Thread safety: the functions are pure; a value shared by threads needs a lock.
// Source: docs/cluster.md.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "server/cluster/topology.h"
#include "server/cluster_tool/node_client.h"

namespace server::cluster {

struct ClusterStatus {
  std::string name;
  TopologyVersion version;
  std::vector<std::string> alive;  // ids of the live nodes

  // The state that each server reports, in the order of the topology's nodes. Errors: why the state
  // is unknown, with the server's address.
  std::vector<core::Result<NodeFacts>> facts;

  // Returns whether every shard has a live leader.
  bool is_whole() const;
  // Returns the number of servers that have stored a newer topology than the one in etcd.
  size_t disagreeing() const;
};

std::string status_table(const ClusterStatus& status);
std::string status_json(const ClusterStatus& status);

}  // namespace server::cluster
