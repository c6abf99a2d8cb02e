// SPDX-License-Identifier: MIT
//
// NodeFile: the contents of cluster.json, which a node of a cluster keeps on its disk. They are its
// id, the last topology, and the highest epoch of its shard. The node never falls behind that
// epoch.
//
// Invariants: a written file is on the disk, whole, when write_node_file() returns.
// Thread safety: free functions; one writer of a path at a time.
// Source: docs/architecture.md, "A cluster".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "server/cluster/topology.h"

namespace server::cluster {

class MemberQueue;

struct NodeFile {
  std::string id;
  TopologyVersion topology;  // revision 0: none was seen
  std::string kept_shard;
  uint64_t kept_epoch = 0;
  std::string etcd_cluster = {};  // etcd's own cluster id, where the topology is from; "": unknown
};

// Errors: not JSON, an unknown format, a value that is missing or wrong.
core::Result<NodeFile> parse_node_file(std::string_view text);
std::string node_file_text(const NodeFile& file);

// Passes '+' and node_file_text() without its end to `done`, for CLUSTERX TOPOLOGY.
void ask_for_node_file(MemberQueue& queue, std::function<void(std::string line)> done);

// Nothing if there is no such file. Errors: one that cannot be read or is damaged.
core::Result<std::optional<NodeFile>> read_node_file(const std::string& path);
core::Result<> write_node_file(const std::string& path, const NodeFile& file);

}  // namespace server::cluster
