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

using Log = std::vector<uint64_t>;  // a log is represented by the numbers of its entries

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
  int64_t lease_end_us = 0;  // time at which the node expects its lease to end, by its own clock
  bool is_present = false;   // true if etcd has confirmed that the node is registered
  bool holds_writes = false;

  // The node's role in replication. After the Member has requested a role, it takes some time until
  // the node has this role.
  uint64_t roles = 0;  // number of roles that the Member has requested
  uint64_t load = 0;   // number of snapshot loads that the node has started or abandoned

  // Time at which the present load of a snapshot ends; 0 if the node loads none.
  int64_t loads_until_us = 0;
  std::string follows;
  uint64_t follows_epoch = 0;
  int64_t heard_us = 0;  // time at which the node last received its leader's stream
  uint64_t history_epoch = 0;
  // The epoch in which the node, as the leader, serves its stream; 0 if it serves no stream.
  uint64_t stream_epoch = 0;
  Log log;
  struct Ack {
    uint64_t acked = 0;
    int64_t at_us = 0;
    uint64_t life = 0;  // the replica's Node::life when it sent this acknowledgement
    bool log_works = true;
  };
  std::map<std::string, Ack> acks;  // in a leader: maps replica ids to acknowledgements
  size_t acknowledged = 0;          // in a leader: number of entries acknowledged to clients

  // State that belongs to the node's machine and its disk.
  uint64_t boot = 1;
  bool log_works = true;
  Log disk;
  uint64_t disk_epoch = 0;  // epoch of the newest stream in the log on the disk
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
  Log safe;  // entries that must not be lost; see record_safe() and record_acknowledged()
};

inline bool is_prefix(const Log& part, const Log& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

}  // namespace simulation
