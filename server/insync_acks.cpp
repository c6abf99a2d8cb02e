// SPDX-License-Identifier: MIT
#include "server/insync_acks.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>

#include "server/cluster/cluster_state.h"
#include "server/cluster/election/member_actions.h"
#include "server/replication/leader/leader.h"
#include "server/replication/stream/replication.h"

namespace server {

uint64_t acked_by_all(const std::set<std::string, std::less<>>& required,
                      const cluster::ReplicationFacts& facts) {
  uint64_t acked = std::numeric_limits<uint64_t>::max();
  for (const std::string& id : required) {
    uint64_t own = 0;
    for (const auto& replica : facts.replicas) {
      // A replica that reconnects may briefly have two links, so the higher acknowledged offset
      // counts.
      if (replica.id == id && replica.is_online) own = std::max(own, replica.acked);
    }
    acked = std::min(acked, own);
  }
  return acked;
}

uint64_t InsyncAcks::offset_of_writes() const {
  // The result 0 means that the reply need not wait. Without a backlog, the replication offset of a
  // leader may be 0. But a leader's reply must wait, because the other members in sync lack the
  // write. So a leader returns at least 1.
  return replication_.is_replica() ? 0 : std::max<uint64_t>(1, replication_.offset());
}

bool InsyncAcks::has_all(uint64_t offset) const {
  return offset <= acked_.load(std::memory_order_acquire);
}

void InsyncAcks::request() {
  leader_.request_acks();
}

void InsyncAcks::refresh() {
  // An earlier state must not replace a later one.
  const std::scoped_lock lock(mutex_);
  cluster::ReplicationFacts facts;
  for (const Leader::Description& replica : leader_.describe()) {
    facts.replicas.push_back(
        {replica.node_id, replica.acked, replica.state == ReplicaState::kOnline});
  }
  acked_.store(acked_by_all(*cluster_.required_acks(), facts), std::memory_order_release);
}

}  // namespace server
