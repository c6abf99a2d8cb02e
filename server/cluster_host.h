// SPDX-License-Identifier: MIT
//
// ClusterHost: connects a cluster node to its server: to the replication and to waiting clients.
//
// Thread safety: the same rules as for NodeHost, see node_host.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/cluster_node/node_host.h"

namespace core::keyspace {
class Keyspace;
}

namespace server {

class CommandThreads;
class Config;
class ReplicaController;
class Leader;
class PauseGate;
class Replication;
struct ServerState;

class ClusterHost final : public cluster::NodeHost {
 public:
  struct Parts {
    const Config& config;
    core::keyspace::Keyspace& keyspace;
    ServerState& state;
    Replication& replication;
    Leader& leader;
    ReplicaController& replica_controller;
    PauseGate& pause;
    CommandThreads& threads;
  };
  explicit ClusterHost(const Parts& parts) : parts_(parts) {}

  // Sets the id of this node, which the node sends to its leaders. Must be called before the
  // threads start.
  void name_node(std::string id);

  cluster::ReplicationFacts facts(const cluster::Shard* shard) override;
  void promote(uint64_t epoch) override;
  void follow(const cluster::Node& leader, uint64_t epoch) override;
  void hold_writes(std::function<void(uint64_t offset)> on_held) override;
  void release_writes() override;
  void service_changed() override;

 private:
  // Ends the role of leader, and records that the data belong to the history of the epoch in which
  // this node led. REQUIRES: the replication's apply_mutex() is locked.
  void stop_leading();

  const Parts parts_;
};

}  // namespace server
