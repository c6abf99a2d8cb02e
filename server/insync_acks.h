// SPDX-License-Identifier: MIT
//
// InsyncAcks: the part of the stream that all members in sync have acknowledged, for
// `cluster-write-acks insync`.
//
// Invariants: a reply to a write is not released before each member that may become the leader has
// acknowledged the write. ClusterState::required_acks() includes such a member before etcd lists
// the member as in sync.
// Thread safety: all members may be called from any thread.
// Source: docs/cluster.md, "Guarantees".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "server/base/process/ordered_mutex.h"
#include "server/net/loop/write_acks.h"

namespace server::cluster {
class ClusterState;
struct ReplicationFacts;
}  // namespace server::cluster

namespace server {

class Leader;
class Replication;

// Returns the highest offset that all members in `required` have acknowledged. Returns the largest
// uint64_t if `required` is empty, because every write is then acknowledged.
uint64_t acked_by_all(const std::set<std::string, std::less<>>& required,
                      const cluster::ReplicationFacts& facts);

class InsyncAcks final : public net::WriteAcks {
 public:
  InsyncAcks(const cluster::ClusterState& cluster, Replication& replication, Leader& leader)
      : cluster_(cluster), replication_(replication), leader_(leader) {}

  uint64_t offset_of_writes() const override;
  bool has_all(uint64_t offset) const override;
  void request() override;
  // Updates the offset that all members in sync have acknowledged. Must be called after each
  // acknowledgement, and when the members to wait for have changed.
  void refresh();

 private:
  const cluster::ClusterState& cluster_;
  Replication& replication_;
  Leader& leader_;
  OrderedMutex mutex_{LockRank::kInsyncAcks};  // this mutex serializes refresh()
  std::atomic<uint64_t> acked_{0};             // offset that all members in sync have acknowledged
};

}  // namespace server
