// SPDX-License-Identifier: MIT
#include "server/clustering.h"

#include "core/keyspace/keyspace.h"
#include "server/config/config.h"
#include "server/process/process_facts.h"
#include "server/process/server_state.h"

namespace server {

Clustering::Clustering(const Parts& parts) : parts_(parts), state_(parts.facts.io_thread_count) {}

core::Result<> Clustering::prepare() {
  const Config& config = parts_.config;
  if (ClusterMode{config.integer(OptionId::kClusterEnabled)} != ClusterMode::kEmulated) return {};
  if (!config.text(OptionId::kReplicaOf).empty()) {
    return core::Error{"replicaof directive not allowed in cluster mode"};
  }
  parts_.keyspace.place_by_slot();
  state_.publish(cluster::View::emulated(parts_.facts.run_id));
  state_.set_service(cluster::Service::kUp);
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

}  // namespace server
