// SPDX-License-Identifier: MIT
//
// The keys of a cluster in etcd. All are below bloomery/<name>/.
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

// The document of server/cluster/topology.h; its mod_revision is the topology's version.
inline std::string topology_key(std::string_view name) {
  return cluster_prefix(name) + "topology";
}

// The checksum of the topology's slots, see server/cluster/slot_record.h.
inline std::string slots_key(std::string_view name) {
  return cluster_prefix(name) + "slots";
}

// One key for each node that runs, under the node's lease: the prefix and its id.
inline std::string alive_prefix(std::string_view name) {
  return cluster_prefix(name) + "alive/";
}

}  // namespace server::cluster
