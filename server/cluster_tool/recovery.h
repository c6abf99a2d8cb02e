// SPDX-License-Identifier: MIT
//
// Recovery: the topology that `bloomery-cluster recover` writes if etcd has lost the topology or
// has an older one. The written topology is the newest one that a server keeps.
//
// Invariants: servers adopt the planned topology, even if its revision in etcd is lower than the
// revision that they keep. If etcd has an older topology than a server, each shard gets a higher
// epoch than any server keeps: see supersedes() in server/cluster/topology.h.
// Thread safety: the functions are pure; a value shared by threads needs a lock.
// Source: docs/cluster.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/cluster/election/node_file.h"
#include "server/cluster/slot_record.h"
#include "server/cluster_tool/plan.h"

namespace server::cluster {

struct KeptFile {
  Address address;
  // The server's cluster.json. Errors: why the file is unknown or is ignored, with the server's
  // address.
  core::Result<NodeFile> file;
};

struct Recovery {
  std::string text;  // lines of text for the user: the kept topologies and the planned steps

  // The topology to write; nullopt if there is nothing to do.
  std::optional<Topology> topology;
};

// Returns an error if the server's file belongs to another cluster than `cluster`. A file without
// a cluster name is accepted, because the name is then unknown.
core::Result<> check_cluster(const Address& address, const NodeFile& file,
                             std::string_view cluster);

// Plans the recovery. `stored` is the topology in etcd; nullopt if there is none. `store_revision`
// is the revision of etcd's whole store. `record` has the checksum that etcd stores in the key
// `slots`. If the slots of the stored topology have changed, servers reject the topology unless its
// slots have this checksum. Errors:
// - No server keeps a topology.
// - No node of the newest topology in `kept` is in the stored topology. So the stored topology
//   belongs to another cluster.
// - A server knows a higher epoch of a shard than the newest topology in `kept` has. So some server
//   that is missing from `kept` has a newer topology.
core::Result<Recovery> plan_recovery(const std::optional<TopologyVersion>& stored,
                                     uint64_t store_revision, const std::vector<KeptFile>& kept,
                                     const SlotRecord& record = {});

}  // namespace server::cluster
