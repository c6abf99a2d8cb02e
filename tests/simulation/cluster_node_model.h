// SPDX-License-Identifier: MIT
//
// The nodes and shards of a ClusterModel.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/cluster_model.h"

namespace simulation {

using Log = std::vector<uint64_t>;  // numbers of log entries

struct ClusterModel::Node {
  std::string id;
  std::string shard;
  // The node's clock is monotonic and continues while the node is down.
  double rate = 1;
  int64_t clock_offset_us = 0;
  int64_t clock(int64_t now_us) const {
    return clock_offset_us + static_cast<int64_t>(static_cast<double>(now_us) * rate);
  }

  uint64_t life = 0;
  bool is_up = false;
  int64_t stopped_until_us = 0;
  std::optional<server::cluster::Member> member;
  uint64_t seen_alive = 0;
  int64_t lease_end_us = 0;  // end of the lease as the node knows it, by its own clock
  bool is_present = false;   // true if the node knows that it is registered in etcd
  bool holds_writes = false;

  // State of the node's replication. A role changes some time after the Member has requested it.
  uint64_t roles = 0;          // number of roles that the Member has requested
  uint64_t load = 0;           // number of snapshot loads that the node has started or abandoned
  int64_t loads_until_us = 0;  // end of the load of a snapshot; 0 if the node loads none
  std::string follows;
  uint64_t follows_epoch = 0;
  int64_t heard_us = 0;  // time at which the node last received its leader's stream
  uint64_t history_epoch = 0;
  uint64_t stream_epoch = 0;  // epoch in which the node leads and serves replicas; else 0
  Log log;
  struct Ack {
    uint64_t acked = 0;
    int64_t at_us = 0;
    uint64_t life = 0;  // the acknowledging replica's `life`, which changes when it restarts
  };
  std::map<std::string, Ack> acks;  // in a leader: the replicas' Acks of this epoch
  size_t acknowledged = 0;          // in a leader: number of entries that clients saw acknowledged

  // The machine and its disk.
  uint64_t boot = 1;
  bool log_works = true;
  Log disk;
  uint64_t disk_epoch = 0;  // epoch of the history on the disk
  int64_t synced_us = 0;
  std::string kept_shard;
  uint64_t kept_epoch = 0;
  uint64_t kept_boot = 0;
  std::shared_ptr<const TopologyVersion> kept_topology;
};

struct ClusterModel::ShardFacts {
  std::string name;
  uint64_t serving_epoch = 0;  // highest epoch in which a leader replied to a client
  const Node* serving = nullptr;
  Log safe;  // entries that every member in sync had on its disk at one time
};

inline bool is_prefix(const Log& part, const Log& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

}  // namespace simulation
