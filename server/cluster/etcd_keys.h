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

struct EtcdKeys {
  explicit EtcdKeys(std::string_view name) : prefix("bloomery/" + std::string(name) + "/") {}
  // Returns the key of a live node. Each running node attaches its key to its lease.
  std::string alive(const std::string& id) const { return alive_prefix + id; }

  const std::string prefix;
  // The key of the topology, a document that server/cluster/topology.h describes. The key's
  // mod_revision in etcd is the topology's version.
  const std::string topology = prefix + "topology";
  // The key that stores the checksum of the topology's slots. server/cluster/slot_record.h explains
  // the purpose of this checksum.
  const std::string slots = prefix + "slots";
  const std::string alive_prefix = prefix + "alive/";  // the prefix of the keys of live nodes
};

}  // namespace server::cluster
