// SPDX-License-Identifier: MIT
//
// NodeHost: the interface through which a cluster node uses its server. Tests of the node implement
// this interface, so they need no server.
//
// Thread safety: the node's thread for roles calls promote() and follow(). These two functions may
// block, for example until a load of a snapshot has been canceled. The node's own thread calls the
// other functions, which must not block. hold_writes() calls back from any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "server/cluster/election/member_actions.h"
#include "server/cluster/topology.h"

namespace server::cluster {

class NodeHost {
 public:
  // `shard` is the node's own shard, whose members are the replicas; null if the node has no shard.
  virtual ReplicationFacts facts(const Shard* shard) = 0;
  virtual void promote(uint64_t epoch) = 0;
  virtual void follow(const Node& leader, uint64_t epoch) = 0;
  // Calls back with the offset of the stream's end once no write runs and no write can begin.
  virtual void hold_writes(std::function<void(uint64_t offset)> on_held) = 0;
  virtual void release_writes() = 0;
  // Called when the view of the cluster or the server's Service (see cluster_state.h) has changed.
  // The server must then check again whether it can serve the waiting clients.
  virtual void service_changed() = 0;

 protected:
  ~NodeHost() = default;
};

}  // namespace server::cluster
