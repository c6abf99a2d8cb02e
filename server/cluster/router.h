// SPDX-License-Identifier: MIT
//
// Router: decides whether this server or another node serves a command with keys. A node makes the
// checks in the same order as Redis.
//
// Thread safety: pure functions.
// Source: Redis 7.0.15, measured; MOVED and CLUSTERDOWN in
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"

namespace server::cluster {

// The keys or shard channels of a command, and how the command uses them.
struct RouteQuery {
  unsigned slot = 0;           // slot of the first key
  bool crosses_slots = false;  // true if the keys lie in several slots
  bool writes = false;         // the command writes keys, or publishes messages
  bool is_channel = false;
  bool reads_replicas = false;  // true if the client has sent READONLY
};

// The state of the server when it routes a command.
struct RouteConditions {
  Service service = Service::kDown;
  bool reads_when_down = false;  // value of cluster-allow-reads-when-down
  bool is_stale = false;  // true for a replica whose data are older than replica-max-staleness
};

// The values of cluster-preferred-endpoint-type, in the order of the option's table row.
enum class EndpointType : int64_t { kIp, kHostname, kUnknown };

enum class Route : uint8_t {
  kServe,
  kHold,       // the client waits until this server can serve the command
  kUnbound,    // no topology is known yet, or this server is in no shard (route_keyless_write)
  kCrossSlot,  // the command's keys lie in several slots
  kDown,
  kDownForWrites,
  kMoved,  // the client is redirected to the leader of the slot
};

Route route(const View& view, const RouteConditions& conditions, const RouteQuery& query);

// Routes a write without key arguments, such as FLUSHALL, which changes all keys of the server's
// shard.
// Returns kServe on a replica, because a later check refuses the write there. Returns kHold while
// clients wait for a handover.
Route route_keyless_write(const View& view, const RouteConditions& conditions);

// The properties of a client that determine how replies name nodes.
struct EndpointStyle {
  EndpointType type = EndpointType::kIp;
  bool is_tls = false;
};

inline constexpr std::string_view kSlotNotServed = "CLUSTERDOWN Hash slot not served";
inline constexpr std::string_view kKeysCrossSlots =
    "CROSSSLOT Keys in request don't hash to the same slot";
inline constexpr std::string_view kClusterIsDown = "CLUSTERDOWN The cluster is down";
inline constexpr std::string_view kClusterOnlyReads =
    "CLUSTERDOWN The cluster is down and only accepts read commands";

// Returns the error that redirects a client to the node that leads the slot.
std::string moved_error(unsigned slot, std::string_view endpoint, unsigned port);

// Returns the reply to a command that is not served. REQUIRES: route is neither kServe nor kHold.
std::string route_error(const View& view, Route route, unsigned slot, EndpointStyle style);

// Returns the node's IP address, its hostname, or an empty text for kUnknown. If the wanted
// hostname is missing, returns "?".
std::string endpoint_of(const Node& node, EndpointType type);

// Returns the port at which a client reaches the node. It is the TLS port if the client uses TLS
// and the node has a TLS port, or if the node has no other port.
unsigned port_of(const Node& node, bool is_tls);

}  // namespace server::cluster
