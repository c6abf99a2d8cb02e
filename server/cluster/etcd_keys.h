// SPDX-License-Identifier: MIT
//
// Defines the keys of a cluster in etcd. All of them begin with bloomery/<name>/.
//
// Thread safety: pure functions.
// Source: docs/cluster.md.
#pragma once

#include <string>
#include <string_view>

namespace server::cluster {

inline std::string cluster_prefix(std::string_view name) {
  return "bloomery/" + std::string(name) + "/";
}

// Returns the key of the topology, a document that server/cluster/topology.h describes. The key's
// mod_revision in etcd is the topology's version.
inline std::string topology_key(std::string_view name) {
  return cluster_prefix(name) + "topology";
}

// Returns the key that stores the checksum of the topology's slots. server/cluster/slot_record.h
// explains the purpose of this checksum.
inline std::string slots_key(std::string_view name) {
  return cluster_prefix(name) + "slots";
}

// The prefix of the keys of live nodes. The key of a node is the prefix followed by the node's id.
// Each running node attaches its key to its lease.
inline std::string alive_prefix(std::string_view name) {
  return cluster_prefix(name) + "alive/";
}

}  // namespace server::cluster
