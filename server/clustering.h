// SPDX-License-Identifier: MIT
//
// Clustering: makes this process a node of a cluster, or of an emulated one, if it is to be one.
//
// Thread safety: prepare() before other threads start; the rest as its comment says.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "server/cluster/cluster_state.h"

namespace core::keyspace {
class Keyspace;
}
namespace server::cluster {
class ClusterNode;
class MemberQueue;
}  // namespace server::cluster

namespace server {

class ClusterHost;
class CommandThreads;
class Config;
class ReplicaController;
class InsyncAcks;
class Leader;
class PauseGate;
class Replication;
class Tls;
struct ProcessFacts;
struct ServerState;

class Clustering {
 public:
  struct Parts {
    const Config& config;
    core::keyspace::Keyspace& keyspace;
    ServerState& state;
    const ProcessFacts& facts;
    Replication& replication;
    Leader& leader;
    ReplicaController& replica_controller;
    PauseGate& pause;
    const Tls* tls;
    CommandThreads& threads;
  };
  explicit Clustering(const Parts& parts);
  ~Clustering();

  // From any thread.
  cluster::ClusterState& state() { return state_; }
  // The permit that replies to writes need; null where they need none.
  const cluster::ClusterState* permit() const { return node_ == nullptr ? nullptr : &state_; }

  // The acknowledgements that replies to writes wait for; null unless cluster-write-acks is insync.
  InsyncAcks* acks() { return acks_.get(); }

  // As `cluster-enabled` says. `member`: set to the way to this node's part in its shard, if it has
  // one. Errors: why the server cannot start.
  core::Result<> prepare(cluster::MemberQueue*& member);
  // Must be called after recovery. Errors: why the data do not fit the cluster.
  core::Result<> check_data() const;
  // Joins the cluster, and leaves it.
  void start();
  void stop();
  // Hands the shard over, if that is possible; `done` is called then, perhaps on another thread.
  // A second call does not wait.
  void retire(std::function<void()> done);
  // The last step before stop(): members that lack something of this node's stream can no longer
  // take over. `done` as for retire(). REQUIRES: no write runs.
  void close_list(std::function<void()> done);

 private:
  const Parts parts_;
  cluster::ClusterState state_;
  std::unique_ptr<InsyncAcks> acks_;
  std::unique_ptr<ClusterHost> host_;
  std::unique_ptr<cluster::ClusterNode> node_;
  bool is_retiring_ = false;
};

}  // namespace server
