// SPDX-License-Identifier: MIT
//
// Topology: the servers of a cluster and its shards, each with its members, leader and slots. It is
// one document in etcd. The version of the document is the revision at which etcd stored it.
//
// Invariants of every Topology that parse_topology() returns or check_topology() accepts: Each of
// the 16384 slots belongs to exactly one shard. A node is a member of exactly one shard. A shard's
// leader and the nodes in its list `insync` are members of the shard, and the leader is in that
// list. No two nodes have the same address. Shards are sorted by name, nodes by id.
// Thread safety: the functions are pure; a value shared by threads needs a lock.
// Source: the whole topology is one document, which is changed by compare-and-swap. So all changes
// have one order: https://etcd.io/docs/v3.4/learning/api/#transaction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/cluster/slot_ranges.h"

namespace server::cluster {

struct Node {
  std::string id;  // id of 40 lower-case hexadecimal digits
  std::string ip;  // the address to which clients are redirected
  uint16_t port = 0;
  uint16_t tls_port = 0;    // port for TLS; 0: none
  std::string hostname;     // host name of the node; may be empty
  std::string others = {};  // unknown JSON members, see Topology::others

  bool operator==(const Node&) const = default;
};

struct Shard {
  std::string name;    // name of 1 to 32 characters: a-z 0-9 - _
  uint64_t epoch = 0;  // number that grows with every change of the shard's leader
  std::string leader;
  // Ids of all members, including the leader, in the order in which they joined.
  std::vector<std::string> members;
  std::vector<std::string> insync;  // ids of the leader and of the members that may take over
  SlotRanges slots;
  std::string others = {};  // unknown JSON members, see Topology::others

  bool operator==(const Shard&) const = default;
  bool has_member(std::string_view id) const;
  bool is_insync(std::string_view id) const;
};

struct Topology {
  std::vector<Shard> shards;
  std::vector<Node> nodes;
  // JSON members of the document that a newer version of Bloomery has added, as a JSON object; ""
  // for none. These members are kept and written back with the next change.
  std::string others = {};

  bool operator==(const Topology&) const = default;
  // Returns the node with the id; null if there is none.
  const Node* node(std::string_view id) const;
  const Shard* shard(std::string_view name) const;
  const Shard* shard_of(std::string_view node_id) const;
  Node* node(std::string_view id);
  Shard* shard(std::string_view name);
};

// A topology and its revision in etcd. The revision is 0 if there is no topology.
struct TopologyVersion {
  Topology topology;
  uint64_t revision = 0;
};

// Returns whether the topology `seen` replaces `known`. Epochs never decrease. A document in which
// an epoch is lower is old, whatever its revision: etcd was restored from a backup. A document in
// which all epochs have grown is new, whatever its revision: `bloomery-cluster recover` writes such
// a document.
bool supersedes(const TopologyVersion& seen, const TopologyVersion& known);

// The reason why the topology in etcd cannot be used.
enum class TopologyFault : uint8_t {
  kNone,
  kAbsent,   // the topology was deleted, or etcd was set up again
  kOlder,    // etcd was restored from a backup: it has an older topology than this node has seen
  kInvalid,  // this node rejects the document in etcd, because it is invalid
};

// A larger document is rejected before it is parsed. etcd accepts no request of more than 1.5 MB.
inline constexpr size_t kTopologyBytesMax = size_t{1024} * 1024;

bool is_node_id(std::string_view id);
bool is_shard_name(std::string_view name);

// Checks the invariants. Errors: the broken invariant, with the name of the shard or node.
core::Result<> check_topology(const Topology& topology);

// Parses the document's text: {"format":1,"shards":{…},"nodes":{…}}. Unknown JSON members are kept.
// Errors: not JSON, a format that this version does not know, a wrong type, and those of
// check_topology().
core::Result<Topology> parse_topology(std::string_view json);

// Returns the document's text. REQUIRES: check_topology() accepts the topology.
std::string topology_json(const Topology& topology);

}  // namespace server::cluster
