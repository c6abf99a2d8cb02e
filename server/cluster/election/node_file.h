// SPDX-License-Identifier: MIT
//
// NodeFile: the contents of cluster.json, which a node of a cluster keeps on its disk. The file has
// the node's id, the last topology, the highest epoch of its shard, and the addresses at which the
// server listened. The node never uses a lower epoch than the one in the file. The file also has
// the machine's boot_id() at the time when the epoch was written.
//
// Invariants: when write_node_file() returns without an error, the whole file is on the disk.
// Thread safety: any thread may call the functions, but only one thread at a time may write a path.
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

// The addresses at which a server listens, from its options.
struct Listening {
  std::string bind;  // addresses of the option `bind`, separated by spaces
  uint16_t port = 0;
  uint16_t tls_port = 0;

  bool operator==(const Listening&) const = default;
};

struct NodeFile {
  std::string id;
  TopologyVersion topology;  // the last topology that the node has seen; revision 0: none
  std::string kept_shard;
  uint64_t kept_epoch = 0;
  std::string etcd_cluster = {};  // cluster id of the etcd that stored the topology; "": unknown
  std::string cluster = {};       // cluster-name; "" in files of older versions
  std::string kept_boot = {};     // boot_id() when kept_epoch was written; "" if unknown

  // The addresses at which the server listened when its address was last announced; nullopt in
  // files of older versions.
  std::optional<Listening> listening = std::nullopt;
};

// Parses the file's text. Errors: not JSON, an unknown format, a value that is missing or wrong.
core::Result<NodeFile> parse_node_file(std::string_view text);
std::string node_file_text(const NodeFile& file);

// Returns whether the file has exactly this version of the topology. Equal revisions are not
// enough: a recovery may store a topology with higher epochs at the same revision.
bool holds(const NodeFile& file, const TopologyVersion& version);

// Calls `done` with the reply to CLUSTERX TOPOLOGY for a node of `cluster`: '+' and then
// node_file_text() without its line end.
void ask_for_node_file(MemberQueue& queue, std::string cluster,
                       std::function<void(std::string line)> done);

// Reads the file. Returns nullopt if it does not exist. Errors: it cannot be read or is damaged.
core::Result<std::optional<NodeFile>> read_node_file(const std::string& path);
core::Result<> write_node_file(const std::string& path, const NodeFile& file);

}  // namespace server::cluster
