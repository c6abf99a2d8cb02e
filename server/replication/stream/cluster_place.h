// SPDX-License-Identifier: MIT
//
// ClusterPlace: the id of this cluster node, and the epochs of its role and of its data. Also
// records whether a full sync has left the data incomplete.
//
// Thread safety: any thread may read and write the atomic values. `node_id` is set before other
// threads start.
// Source: docs/cluster.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace server {

struct ClusterPlace {
  // Epoch in which this server leads its shard or follows its leader; 0 otherwise. Each side of a
  // replication link rejects a peer that has another epoch.
  std::atomic<uint64_t> epoch{0};
  // Epoch in which this server leads; 0 until the change to the role of leader is complete.
  std::atomic<uint64_t> led_epoch{0};
  // Epoch of the leader that produced the data's history; 0 if unknown. Ignored while led_epoch is
  // not 0. The append log stores led_epoch if that is not 0, and otherwise history_epoch.
  std::atomic<uint64_t> history_epoch{0};
  // True while a full sync replaces the data, and after a full sync that deleted the data and
  // failed.
  std::atomic<bool> is_torn{false};
  // The id of this node. The leader identifies its replicas by id, because a node may connect from
  // an address that differs from its announced address. Must be set before the threads start.
  std::string node_id;
};

}  // namespace server
