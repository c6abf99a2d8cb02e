// SPDX-License-Identifier: MIT
//
// EtcdModel: the part of etcd that a Member needs. It has one document with a revision, and keys
// under leases that may end early or late.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/election/member.h"

namespace simulation {

using server::cluster::ChangeTopology;
using server::cluster::IdSet;
using server::cluster::TopologyVersion;

class EtcdModel {
 public:
  explicit EtcdModel(server::cluster::Topology topology)
      : topology_(
            std::make_shared<TopologyVersion>(TopologyVersion{std::move(topology), revision_})) {}

  std::shared_ptr<const TopologyVersion> topology() const { return topology_; }
  // Returns the topology before the latest change, as a member of etcd that lags would return it.
  std::shared_ptr<const TopologyVersion> stale() const { return before_ ? before_ : topology_; }
  bool is_alive(const std::string& id) const { return leases_.contains(id); }
  uint64_t alive_version() const { return alive_version_; }
  IdSet alive() const {
    IdSet ids;
    for (const auto& [id, lease] : leases_) ids.insert(id);
    return ids;
  }

  // Changes the topology. Returns the new revision, or 0 if etcd refuses the change. The process
  // `own_run` of the node `own_id` requests the change.
  uint64_t change(const ChangeTopology& change, const std::string& own_id, uint64_t own_run) {
    const auto own = leases_.find(own_id);
    if (change.revision != topology_->revision) return 0;
    if (!change.gone.empty() && is_alive(change.gone)) return 0;
    if (change.needs_own_alive && (own == leases_.end() || own->second.run != own_run)) return 0;
    store(change.topology);
    return revision_;
  }

  // Restores a backup that lacks the last `changes` changes. New revisions follow the backup's
  // revision. So a later topology may have a revision that nodes know from another topology.
  void restore(size_t changes) {
    topology_ = history_[history_.size() - 1 - std::min(changes, history_.size() - 1)];
    before_ = topology_;
    revision_ = topology_->revision;
  }
  // Writes the topology that `bloomery-cluster recover` would write.
  void recover(server::cluster::Topology newest) {
    for (auto& shard : newest.shards) ++shard.epoch;
    store(std::move(newest));
  }

  // Registers the node in etcd or extends its lease. Returns false if the lease of an earlier
  // process of this node has not ended yet.
  bool keep_alive(const std::string& id, uint64_t run, int64_t end_us) {
    const auto [lease, is_new] = leases_.try_emplace(id, Lease{run, end_us});
    if (is_new) ++alive_version_;
    if (lease->second.run == run) lease->second.end_us = std::max(lease->second.end_us, end_us);
    return lease->second.run == run;
  }
  void end_lease(const std::string& id) { alive_version_ += leases_.erase(id); }
  void end_leases(int64_t now_us) {
    alive_version_ +=
        std::erase_if(leases_, [&](const auto& item) { return item.second.end_us <= now_us; });
  }

 private:
  struct Lease {
    uint64_t run;
    int64_t end_us;
  };

  void store(server::cluster::Topology topology) {
    before_ = topology_;
    revision_ += 2;
    topology_ = std::make_shared<TopologyVersion>(TopologyVersion{std::move(topology), revision_});
    history_.push_back(topology_);
  }

  uint64_t revision_ = 2;
  uint64_t alive_version_ = 1;
  std::map<std::string, Lease> leases_;
  std::shared_ptr<const TopologyVersion> topology_;
  std::shared_ptr<const TopologyVersion> before_;
  std::vector<std::shared_ptr<const TopologyVersion>> history_{topology_};
};

}  // namespace simulation
