// SPDX-License-Identifier: MIT
#include "server/commands/replication/cluster_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "server/base/config/config.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/permit_clock.h"
#include "server/cluster/router.h"
#include "server/commands/pair_writer.h"
#include "server/commands/replication/replica_role.h"
#include "server/dispatch/context.h"
#include "server/dispatch/key_routing.h"

namespace server {
namespace {

using cluster::Node;
using cluster::Shard;
using cluster::SlotRange;
using cluster::View;
using core::keyspace::kSlotCount;

// The offset from the port of a Redis node to the port of its cluster bus. Bloomery has no cluster
// bus and only shows this port in replies.
constexpr unsigned kBusPortDistance = 10000;

// The address at which clients connect to a node.
struct Endpoint {
  std::string host;
  unsigned port = 0;
};

cluster::EndpointType endpoint_type(const Context& ctx) {
  return cluster::EndpointType{ctx.config().integer(OptionId::kClusterPreferredEndpointType)};
}

// Returns the host that cluster-preferred-endpoint-type prefers: the host of the endpoint, or the
// node's hostname.
std::string preferred_host(const Context& ctx, const Endpoint& endpoint, const Node& node) {
  const cluster::EndpointType type = endpoint_type(ctx);
  return type == cluster::EndpointType::kIp ? endpoint.host : cluster::endpoint_of(node, type);
}

// Returns the announced address of this server, or else the address that this client has connected
// to. Used for an emulated cluster, and for a server outside the topology.
Endpoint reached_endpoint(const Context& ctx) {
  const Config& config = ctx.config();
  Endpoint endpoint{"127.0.0.1", config.port()};
  const std::string& address = ctx.client.local_address;
  const size_t colon = address.rfind(':');
  if (!ctx.client.socket.is_unix && colon != std::string::npos) {
    endpoint.host = address.substr(0, colon);
    if (endpoint.host.starts_with('[')) endpoint.host = endpoint.host.substr(1, colon - 2);
    const auto port = core::parse_int64(std::string_view(address).substr(colon + 1));
    if (port) endpoint.port = static_cast<unsigned>(*port);
  }
  if (std::string host = config.text(OptionId::kClusterAnnounceIp); !host.empty()) {
    endpoint.host = std::move(host);
  }
  const OptionId announced_port = ctx.client.socket.tls != nullptr
                                      ? OptionId::kClusterAnnounceTlsPort
                                      : OptionId::kClusterAnnouncePort;
  if (const int64_t port = config.integer(announced_port); port != 0) {
    endpoint.port = static_cast<unsigned>(port);
  }
  return endpoint;
}

Endpoint endpoint_of(const Context& ctx, const Node& node) {
  const View& view = view_of(ctx);
  if (view.is_emulated() || (node.id == view.own_id() && view.own_node() == nullptr)) {
    return reached_endpoint(ctx);
  }
  return {node.ip, cluster::port_of(node, ctx.client.socket.tls != nullptr)};
}

// Returns whether clients may read from this node instead of the leader.
bool is_readable(const View& view, const Shard& shard, const std::string& id) {
  return id != shard.leader && shard.is_insync(id) && view.is_alive(id);
}

void write_node_of_slots(Context& ctx, const Node& node) {
  const Endpoint endpoint = endpoint_of(ctx, node);
  const cluster::EndpointType type = endpoint_type(ctx);
  ctx.reply.array(4);
  const bool has_host = type != cluster::EndpointType::kUnknown;
  has_host ? ctx.reply.bulk(preferred_host(ctx, endpoint, node)) : ctx.reply.null();
  ctx.reply.integer(endpoint.port);
  ctx.reply.bulk(node.id);
  const bool has_ip = type != cluster::EndpointType::kIp;
  const bool has_hostname = type != cluster::EndpointType::kHostname && !node.hostname.empty();
  ctx.reply.map((has_ip ? 1U : 0U) + (has_hostname ? 1U : 0U));
  PairWriter pairs(ctx.reply);
  if (has_ip) pairs.text("ip", endpoint.host);
  if (has_hostname) pairs.text("hostname", node.hostname);
}

// Returns the offset up to which the node has received its shard's stream, as far as this server
// knows. No other node is asked.
int64_t offset_of(const Context& ctx, const Shard& shard, const Node& node) {
  const std::string& own_id = view_of(ctx).own_id();
  if (node.id == own_id) return replication_offset(ctx);
  if (!shard.has_member(own_id)) return 0;
  // A replica does not know the exact offset of its leader. It reports its own offset instead,
  // which may be slightly lower.
  if (node.id == shard.leader) return replication_offset(ctx);
  return replica_offset(ctx, node.id);
}

void write_node_of_shard(Context& ctx, const Shard& shard, const Node& node) {
  const View& view = view_of(ctx);
  const Endpoint endpoint = endpoint_of(ctx, node);
  const bool has_both_ports = !view.is_emulated() && node.port != 0 && node.tls_port != 0;
  ctx.reply.map(7U + (has_both_ports ? 1U : 0U) + (node.hostname.empty() ? 0U : 1U));
  PairWriter pairs(ctx.reply);
  pairs.text("id", node.id);
  pairs.integer("port", has_both_ports ? node.port : endpoint.port);
  if (has_both_ports) pairs.integer("tls-port", node.tls_port);
  pairs.text("ip", endpoint.host);
  pairs.text("endpoint", preferred_host(ctx, endpoint, node));
  if (!node.hostname.empty()) pairs.text("hostname", node.hostname);
  pairs.text("role", node.id == shard.leader ? "master" : "replica");
  pairs.integer("replication-offset", view.is_emulated() ? 0 : offset_of(ctx, shard, node));
  const bool is_whole = node.id == shard.leader || shard.is_insync(node.id);
  pairs.text("health", !view.is_alive(node.id) ? "fail" : is_whole ? "online" : "loading");
}

struct RangeOwner {
  SlotRange range;
  const Shard* shard;
};

std::vector<RangeOwner> ranges_of(const View& view) {
  std::vector<RangeOwner> ranges;
  for (const Shard& shard : view.shards()) {
    for (const SlotRange& range : shard.slots) ranges.push_back({range, &shard});
  }
  std::ranges::sort(ranges, {}, [](const RangeOwner& one) { return one.range.first; });
  return ranges;
}

// The states of the topology, in the order of TopologyFault.
constexpr std::string_view kTopologyStates[] = {"ok", "absent", "older", "invalid"};
static_assert(std::size(kTopologyStates) ==
              static_cast<size_t>(cluster::TopologyFault::kInvalid) + 1);

}  // namespace

std::string node_line(const Context& ctx, const Node& node, WithSlots with_slots) {
  const View& view = view_of(ctx);
  const Endpoint endpoint = endpoint_of(ctx, node);
  const Shard* const shard = view.topology().shard_of(node.id);
  const bool leads = shard != nullptr && shard->leader == node.id;
  const bool is_self = node.id == view.own_id();
  const bool is_alive = is_self || view.is_alive(node.id);
  std::string line = fmt::format("{} {}:{}@{}", node.id, endpoint.host, endpoint.port,
                                 endpoint.port + kBusPortDistance);
  if (!node.hostname.empty()) line += "," + node.hostname;
  line += is_self ? " myself," : " ";
  line += leads || shard == nullptr ? "master" : "slave";
  if (!is_alive) line += ",fail";
  line += fmt::format(" {} 0 {} {} {}", leads || shard == nullptr ? "-" : shard->leader,
                      is_self ? 0 : ctx.now_ms, shard == nullptr ? 0 : shard->epoch,
                      is_alive ? "connected" : "disconnected");
  if (leads && with_slots == WithSlots::kYes && !shard->slots.empty()) {
    line += ' ';
    line += cluster::slot_ranges_text(shard->slots);
  }
  return line;
}

void write_slots(Context& ctx) {
  const View& view = view_of(ctx);
  const std::vector<RangeOwner> ranges = ranges_of(view);
  ctx.reply.array(ranges.size());
  for (const auto& [range, shard] : ranges) {
    std::vector<const Node*> nodes = {&view.leader_of(*shard)};
    for (const std::string& id : shard->members) {
      if (is_readable(view, *shard, id)) nodes.push_back(view.topology().node(id));
    }
    ctx.reply.array(2 + nodes.size());
    ctx.reply.integer(range.first);
    ctx.reply.integer(range.last);
    for (const Node* node : nodes) write_node_of_slots(ctx, *node);
  }
}

void write_shards(Context& ctx) {
  const View& view = view_of(ctx);
  ctx.reply.array(view.shards().size());
  for (const Shard& shard : view.shards()) {
    ctx.reply.map(2);
    ctx.reply.bulk("slots");
    ctx.reply.array(2 * shard.slots.size());
    for (const SlotRange& range : shard.slots) {
      ctx.reply.integer(range.first);
      ctx.reply.integer(range.last);
    }
    ctx.reply.bulk("nodes");
    ctx.reply.array(shard.members.size());
    write_node_of_shard(ctx, shard, view.leader_of(shard));
    for (const std::string& id : shard.members) {
      if (id != shard.leader) write_node_of_shard(ctx, shard, *view.topology().node(id));
    }
  }
}

std::string cluster_info_text(const View& view, const cluster::ClusterState& state) {
  const bool serves =
      view.own_shard() != nullptr && (!view.leads() || state.service() != cluster::Service::kDown);
  unsigned failed_slots = 0;
  size_t leaders_with_slots = 0;
  for (const Shard& shard : view.shards()) {
    if (!shard.slots.empty()) ++leaders_with_slots;
    if (!view.is_alive(shard.leader)) failed_slots += cluster::slot_count(shard.slots);
  }
  const unsigned assigned = view.has_topology() ? kSlotCount : 0;
  std::string text = fmt::format("cluster_state:{}\r\n", serves ? "ok" : "fail");
  const auto field = [&text](std::string_view name, uint64_t value) {
    text += fmt::format("{}:{}\r\n", name, value);
  };
  field("cluster_slots_assigned", assigned);
  field("cluster_slots_ok", assigned - failed_slots);
  field("cluster_slots_pfail", 0);
  field("cluster_slots_fail", failed_slots);
  field("cluster_known_nodes", view.nodes().size() + (view.own_node() == nullptr ? 1 : 0));
  field("cluster_size", leaders_with_slots);
  field("cluster_current_epoch", view.revision());
  field("cluster_my_epoch", view.own_shard() == nullptr ? 0 : view.own_shard()->epoch);
  for (const std::string_view name :
       {"cluster_stats_messages_sent", "cluster_stats_messages_received",
        "total_cluster_links_buffer_limit_exceeded"}) {
    field(name, 0);
  }
  if (!view.is_emulated()) {
    const int64_t left_us = state.permit_until_us() - cluster::permit_clock_us();
    text += fmt::format("cluster_permit_ms:{}\r\ncluster_etcd:{}\r\n",
                        std::max<int64_t>(0, left_us / 1000), state.etcd_is_up() ? "up" : "down");
    text +=
        fmt::format("cluster_topology:{}\r\n", kTopologyStates[static_cast<size_t>(view.fault())]);
    const Shard* const shard = view.own_shard();
    field("cluster_members", shard == nullptr ? 0 : shard->members.size());
    field("cluster_members_in_sync", shard == nullptr ? 0 : shard->insync.size());
    const cluster::ClusterCounters& counters = state.counters();
    field("cluster_bytes_behind", counters.bytes_behind);
    field("cluster_permit_lapses", counters.permit_lapses);
    for (size_t i = 0; i < cluster::kFailoverCauses.size(); ++i) {
      field(fmt::format("cluster_failovers_{}", cluster::kFailoverCauses[i]),
            counters.failovers[i]);
    }
  }
  return text;
}

}  // namespace server
