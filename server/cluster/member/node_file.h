// SPDX-License-Identifier: MIT
//
// NodeFile: the contents of cluster.json, which a node of a cluster keeps on its disk. They are its
// id, the last topology, the highest epoch of its shard, and where the server listened. The node
// never falls behind that epoch.
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

// Where a server listens, as its options say.
struct Listening {
  std::string bind;  // addresses with spaces between them
  uint16_t port = 0;
  uint16_t tls_port = 0;

  bool operator==(const Listening&) const = default;
};

struct NodeFile {
  std::string id;
  TopologyVersion topology;  // revision 0: none was seen
  std::string kept_shard;
  uint64_t kept_epoch = 0;
  std::string etcd_cluster = {};  // cluster id of the etcd that stored the topology; "": unknown
  std::string cluster = {};       // cluster-name; "" in files of older versions
  // As of the last announcement; nullopt in files of older versions.
  std::optional<Listening> listening = std::nullopt;
};

// Errors: not JSON, an unknown format, a value that is missing or wrong.
core::Result<NodeFile> parse_node_file(std::string_view text);
std::string node_file_text(const NodeFile& file);

// Passes '+' and node_file_text() without its end to `done`, for CLUSTERX TOPOLOGY.
void ask_for_node_file(MemberQueue& queue, std::function<void(std::string line)> done);

// Returns nullopt if there is no such file. Errors: a file that cannot be read or is damaged.
core::Result<std::optional<NodeFile>> read_node_file(const std::string& path);
core::Result<> write_node_file(const std::string& path, const NodeFile& file);

}  // namespace server::cluster
