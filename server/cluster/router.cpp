// SPDX-License-Identifier: MIT
#include "server/cluster/router.h"

#include <fmt/format.h>

namespace server::cluster {
namespace {

Route route_own(const RouteConditions& conditions, const RouteQuery& query) {
  switch (conditions.service) {
    case Service::kHeld:
      return query.reads_replicas && !query.writes ? Route::kServe : Route::kHold;
    case Service::kUp:  // unreachable: the callers handle kUp themselves
    case Service::kDown:
      break;
  }
  const bool is_listening = query.is_channel && !query.writes;
  if (is_listening || (query.reads_replicas && !query.writes)) return Route::kServe;
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
  switch (route) {
    case Route::kUnbound:
      return std::string(kSlotNotServed);
    case Route::kCrossSlot:
      return std::string(kKeysCrossSlots);
    case Route::kDown:
      return std::string(kClusterIsDown);
    case Route::kDownForWrites:
      return std::string(kClusterOnlyReads);
    case Route::kMoved: {
      const Node& leader = view.leader_of(view.shard_of(slot));
      return moved_error(slot, endpoint_of(leader, style.type), port_of(leader, style.is_tls));
    }
    case Route::kServe:
    case Route::kHold:
      break;
  }
  return {};
}

std::string endpoint_of(const Node& node, EndpointType type) {
  switch (type) {
    case EndpointType::kIp:
      return node.ip;
    case EndpointType::kHostname:
      return node.hostname.empty() ? "?" : node.hostname;
    case EndpointType::kUnknown:
      break;
  }
  return {};
}

unsigned port_of(const Node& node, bool is_tls) {
  const bool has_plain_port = node.port != 0;
  return (is_tls && node.tls_port != 0) || !has_plain_port ? node.tls_port : node.port;
}

}  // namespace server::cluster
