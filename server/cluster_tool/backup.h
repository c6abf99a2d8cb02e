// SPDX-License-Identifier: MIT
//
// Backup: the contents of a directory that `bloomery-cluster backup` writes. The directory has the
// snapshot of each shard's leader. backup.json holds the topology, and the offset of each snapshot
// in its leader's stream.
//
// Invariants: backup.json is written last, so a directory that has it is complete. A restored
// topology has higher epochs than the saved one.
// Thread safety: the functions are pure; a value shared by threads needs a lock.
// Source: docs/cluster.md, "Backups".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/cluster/topology.h"
#include "server/cluster_tool/snapshot_fetch.h"

namespace server::cluster {

inline constexpr std::string_view kBackupFile = "backup.json";

struct ShardBackup {
  std::string shard;
  std::string leader;  // address of the leader whose snapshot was taken
  FetchedSnapshot snapshot;

  std::string file() const { return shard + ".rdb"; }
};

struct Backup {
  std::string cluster;
  TopologyVersion version;
  std::vector<ShardBackup> shards;

  // Returns the number of keys in the shard's snapshot.
  uint64_t keys_of(std::string_view shard) const;
};

std::string backup_json(const Backup& backup);
// Parses backup.json. Errors: not JSON, an unknown format, a missing or wrong value, a topology
// that is not valid.
core::Result<Backup> parse_backup(std::string_view text);

// Returns the saved topology with `nodes` in place of the saved nodes. The first nodes lead the
// shards in the order of the shards' names. The other nodes are assigned to the shards in turn, as
// replicas. Errors: fewer nodes than shards.
core::Result<Topology> plan_restore(const Backup& backup, std::vector<Node> nodes);

}  // namespace server::cluster
