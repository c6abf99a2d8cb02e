// SPDX-License-Identifier: MIT
#include "server/admin/figures/readiness.h"

#include <fmt/format.h>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/permit_clock.h"
#include "server/cluster/view.h"
#include "server/commands/services.h"
#include "server/replication/replica_controller.h"
#include "server/replication/shutdown.h"
#include "server/replication/stream/replication.h"

namespace server::admin {
namespace {

// Returns why this node of a cluster is not ready. Returns an empty text if it is ready, or outside
// a cluster.
std::string node_cause(const cluster::ClusterState& state) {
  const auto view = state.latest();
  if (view == nullptr || view->is_emulated()) return {};
  if (!view->has_topology()) return "The node does not know its cluster's topology yet";
  if (view->own_shard() == nullptr) return "The cluster's topology does not name this node";
  if (view->fault() == cluster::TopologyFault::kAbsent) return "etcd has no topology";
  if (view->fault() == cluster::TopologyFault::kOlder) {
    return "etcd has an older topology than this node";
  }
  if (!view->leads()) return {};
  if (state.service() == cluster::Service::kHeld) {
    return "The node leads its shard, and waits for the former leader's permit to end";
  }
  const bool is_permitted = state.permits_replies(cluster::permit_clock_us());
  if (state.service() == cluster::Service::kUp && is_permitted) return {};
  return "The node leads its shard, and has no permit to serve it";
}

}  // namespace

std::string unready_cause(const Services& services) {
  if (services.shutdown.state() != Shutdown::State::kNone) return "The server is shutting down";
  const Availability& availability = services.state.availability;
  if (availability.has(Availability::kLoading)) return "The server is loading its data";
  if (auto cause = node_cause(services.cluster); !cause.empty()) return cause;
  if (!services.replication.is_replica()) return {};
  const ReplicaFigures& figures = services.replica_controller.figures();
  const bool is_up =
      figures.state == ReplicaLinkState::kConnected && services.replication.link_is_up();
  const uint64_t sync_count = figures.full_syncs + figures.partial_syncs;
  if (figures.state == ReplicaLinkState::kSync || (!is_up && sync_count == 0)) {
    return "The replica has not got its leader's data yet";
  }
  if (availability.has(Availability::kStaleReplica)) {
    return "The replica has lost its leader and does not serve old data";
  }
  const int64_t lag_max_s = services.config.integer(OptionId::kHttpReadyMaxLag);
  const int64_t heard_us = is_up ? figures.last_received_us : figures.down_since_us;
  const int64_t lag_s = (services.clock.monotonic_us() - heard_us) / core::kSecondUs;
  if (lag_max_s != 0 && lag_s > lag_max_s) {
    return fmt::format("The replica heard its leader {} seconds ago, http-ready-max-lag is {}",
                       lag_s, lag_max_s);
  }
  return {};
}

}  // namespace server::admin
