// SPDX-License-Identifier: MIT
//
// SlotRecord: protects the slots of the topology in etcd against accidental changes. A tool that
// moves slots on purpose also writes the checksum of the new slots into the etcd key `slots`, in
// the same transaction. A topology whose slots have changed is rejected if their checksum differs
// from the recorded checksum.
//
// Invariants: a topology with the same slots as the last accepted topology is always accepted.
// Thread safety: belongs to one thread; slots_checksum() is pure.
// Source: docs/cluster.md, "In etcd".
#pragma once

#include <string>

#include "core/result.h"
#include "server/cluster/topology.h"

namespace server::cluster {

// Returns a checksum of the names of the shards and their slots, as 16 hexadecimal digits.
std::string slots_checksum(const Topology& topology);

struct SlotRecord {
  // The value of the key `slots`; empty if there is none, as in clusters of older versions.
  std::string checksum = {};

  // Checks a topology from etcd. `known` is the last accepted topology, with revision 0 for none.
  // Errors: the slots differ from the known ones, and their checksum is not the recorded one.
  core::Result<> check(const Topology& seen, const TopologyVersion& known) const;
};

}  // namespace server::cluster
