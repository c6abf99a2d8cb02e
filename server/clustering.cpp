// SPDX-License-Identifier: MIT
#include "server/clustering.h"

#include <utility>

#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/base/process/process_facts.h"
#include "server/base/process/server_state.h"
#include "server/cluster_node/cluster_node.h"
#include "server/insync_acks.h"

namespace server {

Clustering::Clustering(const Parts& parts) : parts_(parts), state_(parts.facts.io_thread_count) {}

Clustering::~Clustering() = default;

core::Result<> Clustering::prepare(cluster::MemberQueue*& member) {
  const Config& config = parts_.config;
  const ClusterMode mode{config.integer(OptionId::kClusterEnabled)};
  if (mode == ClusterMode::kNo) return {};
  if (!config.text(OptionId::kReplicaOf).empty()) {
    return core::Error{"replicaof directive not allowed in cluster mode"};
  }
  parts_.keyspace.place_by_slot();
  if (mode == ClusterMode::kEmulated) {
    state_.publish(cluster::View::emulated(parts_.facts.run_id));
    state_.set_service(cluster::Service::kUp);
  } else {
    host_ = std::make_unique<ClusterHost>(parts_);
    auto node =
        cluster::ClusterNode::make({config, parts_.tls, state_, *host_, parts_.facts.run_id});
    if (!node) return node.error();
    node_ = *std::move(node);
    host_->name_node(node_->id());
    member = node_.get();
    if (config.integer(OptionId::kClusterWriteAcks) != 0) {
      acks_ = std::make_unique<InsyncAcks>(state_, parts_.replication, parts_.leader);
    }
  }
  parts_.state.availability.begin(Availability::kInCluster);
  return {};
}

core::Result<> Clustering::check_data() const {
  if (!parts_.state.is_in_cluster()) return {};
  for (unsigned i = 1; i < parts_.keyspace.database_count(); ++i) {
    if (parts_.keyspace.db_size(i) == 0) continue;
    return core::Error{
        "You can't have keys in a DB different than DB 0 when in Cluster mode. Exiting."};
  }
  return {};
}

void Clustering::start() {
  if (node_ != nullptr) node_->start();
}

void Clustering::retire(std::function<void()> done) {
  if (node_ == nullptr || is_retiring_.exchange(true)) return done();
  node_->depart(cluster::ClusterNode::Step::kHandOver, [this, done = std::move(done)] {
    is_retiring_ = false;
    done();
  });
}

void Clustering::close_list(std::function<void()> done) {
  if (node_ == nullptr) return done();
  node_->depart(cluster::ClusterNode::Step::kCloseList, std::move(done));
}

void Clustering::stop() {
  if (node_ != nullptr) node_->stop();
}

}  // namespace server
