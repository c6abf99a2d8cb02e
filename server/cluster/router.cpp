// SPDX-License-Identifier: MIT
#include "server/cluster/router.h"

#include <fmt/format.h>

namespace server::cluster {
namespace {

Route route_own(const RouteConditions& conditions, const RouteQuery& query) {
  // The Service is kHeld or kDown, because the callers handle kUp themselves.
  const bool reads_replica = query.reads_replicas && !query.writes;
  if (conditions.service == Service::kHeld) return reads_replica ? Route::kServe : Route::kHold;
  const bool is_listening = query.is_channel && !query.writes;
  if (is_listening || reads_replica) return Route::kServe;
  if (!conditions.reads_when_down) return Route::kDown;
  return query.writes ? Route::kDownForWrites : Route::kServe;
}

}  // namespace

Route route(const View& view, const RouteConditions& conditions, const RouteQuery& query) {
  if (!view.has_topology()) return Route::kUnbound;
  if (query.crosses_slots) return Route::kCrossSlot;
  const bool is_in_service = conditions.service == Service::kUp && view.leads(query.slot);
  if (is_in_service) return Route::kServe;  // the condition must agree with ClusterState::serves()
  if (!view.owns(query.slot)) return Route::kMoved;
  if (view.leads()) return route_own(conditions, query);
  const bool reads = (query.reads_replicas || query.is_channel) && !query.writes;
  if (reads) return conditions.is_stale && !query.is_channel ? Route::kMoved : Route::kServe;
  // While this node takes the shard over or hands it over, writes wait. Otherwise clients are
  // redirected to the leader.
  return conditions.service == Service::kHeld ? Route::kHold : Route::kMoved;
}

Route route_keyless_write(const View& view, const RouteConditions& conditions) {
  if (view.own_shard() == nullptr) return Route::kUnbound;
  if (conditions.service == Service::kHeld) return Route::kHold;
  const bool is_served = conditions.service == Service::kUp || !view.leads();
  return is_served ? Route::kServe : route_own(conditions, {.writes = true});
}

std::string moved_error(unsigned slot, std::string_view endpoint, unsigned port) {
  return fmt::format("MOVED {} {}:{}", slot, endpoint, port);
}

std::string route_error(const View& view, Route route, unsigned slot, EndpointStyle style) {
  if (route == Route::kMoved) {
    const Node& leader = view.leader_of(view.shard_of(slot));
    return moved_error(slot, endpoint_of(leader, style.type), port_of(leader, style.is_tls));
  }
  if (route == Route::kUnbound) return std::string(kSlotNotServed);
  if (route == Route::kCrossSlot) return std::string(kKeysCrossSlots);
  return std::string(route == Route::kDown ? kClusterIsDown : kClusterOnlyReads);
}

std::string endpoint_of(const Node& node, EndpointType type) {
  if (type == EndpointType::kIp) return node.ip;
  if (type == EndpointType::kUnknown) return {};
  return node.hostname.empty() ? "?" : node.hostname;
}

unsigned port_of(const Node& node, bool is_tls) {
  const bool has_plain_port = node.port != 0;
  return (is_tls && node.tls_port != 0) || !has_plain_port ? node.tls_port : node.port;
}

}  // namespace server::cluster
