// SPDX-License-Identifier: MIT
//
// Clustering: makes this process a node of a cluster or of an emulated cluster, if configured.
//
// Thread safety: prepare() must be called before other threads start. Any thread may call state(),
// permit(), acks(), retire() and close_list(). One thread may call check_data() and start(). stop()
// must be called after the threads that call the other members have ended.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/result.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster_host.h"

namespace server::cluster {
class ClusterNode;
class MemberQueue;
}  // namespace server::cluster

namespace server {

class InsyncAcks;
class Tls;
struct ProcessFacts;

class Clustering {
 public:
  struct Parts : ClusterHost::Parts {
    const ProcessFacts& facts;
    const Tls* tls;
  };
  explicit Clustering(const Parts& parts);
  ~Clustering();

  // Returns the state of the cluster. Thread-safe.
  cluster::ClusterState& state() { return state_; }
  // Returns the permit that replies to writes need; null if they need no permit.
  const cluster::ClusterState* permit() const { return node_ == nullptr ? nullptr : &state_; }

  // Returns the acknowledgements that replies to writes wait for; null unless cluster-write-acks is
  // insync.
  InsyncAcks* acks() { return acks_.get(); }

  // Prepares the mode that `cluster-enabled` selects. If the cluster is not emulated, sets `member`
  // to the queue of this node's Member. Errors: why the server cannot start.
  core::Result<> prepare(cluster::MemberQueue*& member);
  // Checks that a server in a cluster has loaded no keys outside database 0. Must be called after
  // recovery. Errors: there are such keys.
  core::Result<> check_data() const;
  // start() joins the cluster, and stop() leaves it.
  void start();
  void stop();
  // Hands the shard over to another member if possible, then calls `done`, perhaps on another
  // thread. A call during a handover calls `done` at once.
  void retire(std::function<void()> done);
  // Ensures that members that lack part of this node's stream can no longer take over. Then calls
  // `done`, perhaps on another thread. Must be called as the last step before stop(). REQUIRES: no
  // write is running.
  void close_list(std::function<void()> done);

 private:
  const Parts parts_;
  cluster::ClusterState state_;
  std::unique_ptr<InsyncAcks> acks_;
  std::unique_ptr<ClusterHost> host_;
  std::unique_ptr<cluster::ClusterNode> node_;
  std::atomic<bool> is_retiring_{false};
};

}  // namespace server
