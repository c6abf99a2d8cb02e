// SPDX-License-Identifier: MIT
//
// ClusterPlace: the values that servers of a cluster exchange when a replica connects, and the
// epoch of the history that the data come from.
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
  // link rejects another epoch.
  std::atomic<uint64_t> epoch{0};
  // Epoch in which this server leads, once its role has changed; 0 otherwise.
  std::atomic<uint64_t> led_epoch{0};
  // Epoch of the leader whose history the data were from before this server led; 0 if unknown. The
  // append log keeps it.
  std::atomic<uint64_t> history_epoch{0};
  // True while a full sync replaces the data, or after it has lost them.
  std::atomic<bool> is_torn{false};
  // This node's id, by which its leader identifies it: the node need not connect from its announced
  // address. Must be set before the threads start.
  std::string node_id;
};

}  // namespace server
