// SPDX-License-Identifier: MIT
//
// Clustering: makes this process a node of a cluster, or of an emulated one, if it is to be one.
//
// Thread safety: prepare() before other threads start; the rest as its comment says.
#pragma once

#include "core/result.h"
#include "server/cluster/cluster_state.h"

namespace core::keyspace {
class Keyspace;
}

namespace server {

class Config;
struct ProcessFacts;
struct ServerState;

class Clustering {
 public:
  struct Parts {
    const Config& config;
    core::keyspace::Keyspace& keyspace;
    ServerState& state;
    const ProcessFacts& facts;
  };
  explicit Clustering(const Parts& parts);

  // From any thread.
  cluster::ClusterState& state() { return state_; }

  // As `cluster-enabled` says. Errors: why the server cannot start.
  core::Result<> prepare();
  // Behind recovery. Errors: why the data do not fit.
  core::Result<> check_data() const;

 private:
  const Parts parts_;
  cluster::ClusterState state_;
};

}  // namespace server
