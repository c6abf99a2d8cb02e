// SPDX-License-Identifier: MIT
#include "server/cluster_tool/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/keyspace/slot.h"
#include "core/printable.h"

namespace server::cluster {
namespace {

bool is_among(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

core::Error unknown_shard(const Topology& topology, std::string_view name) {
  std::string known;
  for (const Shard& shard : topology.shards) known += (known.empty() ? "" : ", ") + shard.name;
  return {fmt::format("ERR there is no shard '{}'; there are {}", core::printable(name), known)};
}

core::Result<Topology> checked(Topology topology) {
  std::ranges::sort(topology.nodes, {}, &Node::id);
  std::ranges::sort(topology.shards, {}, &Shard::name);
  if (auto fault = check_topology(topology); !fault) return fault.error();
  return topology;
}

std::string or_replace(const Shard& shard) {
  return fmt::format(
      "if all members in sync are lost for good, `replace {} HOST:PORT --accept-loss` gives it an "
      "empty leader",
      shard.name);
}

void take_out(Topology& topology, const std::string& id) {
  for (Shard& shard : topology.shards) {
    std::erase(shard.members, id);
    std::erase(shard.insync, id);
  }
  std::erase_if(topology.nodes, [&](const Node& node) { return node.id == id; });
}

Shard* smallest_shard(Topology& topology) {
  const auto size = [](const Shard& shard) { return shard.members.size(); };
  const auto found = std::ranges::min_element(topology.shards, {}, size);
  return found == topology.shards.end() ? nullptr : &*found;
}

}  // namespace

core::Result<Address> parse_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const std::string_view digits = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const uint16_t port = parse_port(digits).value_or(0);
  if (host.empty() || port == 0) {
    return core::Error{fmt::format("ERR '{}' is not HOST:PORT", core::printable(text))};
  }
  return Address{std::string(host), port};
}

const Node* node_at(const Topology& topology, const Address& address) {
  const auto found = std::ranges::find_if(topology.nodes, [&](const Node& node) {
    return node.ip == address.host && (node.port == address.port || node.tls_port == address.port);
  });
  return found == topology.nodes.end() ? nullptr : &*found;
}

core::Result<Topology> plan_create(std::vector<Node> nodes, unsigned replicas) {
  const size_t leaders = nodes.size() / (size_t{replicas} + 1);
  if (leaders == 0) {
    return core::Error{fmt::format("ERR {} nodes are too few for a shard with {} replicas",
                                   nodes.size(), replicas)};
  }
  if (leaders > core::keyspace::kSlotCount) return core::Error{"ERR more shards than slots"};
  Topology topology;
  const auto slots = equal_slot_ranges(static_cast<unsigned>(leaders));
  for (size_t i = 0; i < leaders; ++i) {
    topology.shards.push_back({.name = fmt::format("s{}", i + 1),
                               .epoch = 1,
                               .leader = nodes[i].id,
                               .members = {nodes[i].id},
                               .insync = {nodes[i].id},
                               .slots = {slots[i]}});
  }
  for (size_t i = leaders; i < nodes.size(); ++i) {
    topology.shards[i % leaders].members.push_back(nodes[i].id);
  }
  topology.nodes = std::move(nodes);
  return checked(std::move(topology));
}

core::Result<Topology> plan_add(Topology topology, const std::vector<std::string>& alive, Node node,
                                std::string_view shard_name) {
  if (topology.node(node.id) != nullptr) {
    return core::Error{fmt::format("ERR the node with id {} is in the cluster already", node.id)};
  }
  std::string name(shard_name);
  const Node* const former =
      node_at(topology, {node.ip, node.port != 0 ? node.port : node.tls_port});
  if (former != nullptr && !is_among(alive, former->id)) {
    const std::string former_id = former->id;
    const Shard& place = *topology.shard_of(former_id);
    if (place.leader == former_id) {
      return core::Error{
          fmt::format("ERR the server that was at this address leads shard {}: give it another "
                      "leader first, by `failover {} --force`; {}",
                      place.name, place.name, or_replace(place))};
    }
    if (name.empty()) name = place.name;
    take_out(topology, former_id);
  }
  Shard* shard = name.empty() ? smallest_shard(topology) : topology.shard(name);
  if (shard == nullptr) return unknown_shard(topology, name);
  shard->members.push_back(node.id);
  topology.nodes.push_back(std::move(node));
  return checked(std::move(topology));
}

core::Result<Topology> plan_replace(Topology topology, const std::vector<std::string>& alive,
                                    Node node, std::string_view shard_name) {
  Shard* shard = topology.shard(shard_name);
  if (shard == nullptr) return unknown_shard(topology, shard_name);
  if (topology.node(node.id) != nullptr) {
    return core::Error{fmt::format("ERR the node with id {} is in the cluster already", node.id)};
  }
  for (const std::string& id : shard->insync) {
    if (!is_among(alive, id)) continue;
    return core::Error{fmt::format("ERR {} has the data of shard {} and is alive: `failover {}`",
                                   topology.node(id)->ip, shard->name, shard->name)};
  }
  const std::vector<std::string> members = shard->members;
  shard->leader = node.id;
  ++shard->epoch;
  for (const std::string& id : members) {
    if (!is_among(alive, id)) take_out(topology, id);
  }
  shard->members.insert(shard->members.begin(), node.id);
  shard->insync = {node.id};
  topology.nodes.push_back(std::move(node));
  return checked(std::move(topology));
}

core::Result<Topology> plan_remove(Topology topology, const Address& address) {
  const Node* found = node_at(topology, address);
  if (found == nullptr) {
    return core::Error{
        fmt::format("ERR there is no node {} in the cluster; `status` shows the nodes' addresses",
                    core::printable(address.text()))};
  }
  const std::string id = found->id;
  const Shard& shard = *topology.shard_of(id);
  if (shard.leader == id && shard.members.size() == 1) {
    return core::Error{
        fmt::format("ERR {} is all that shard {} has: its slots would have no owner; {}",
                    address.text(), shard.name, or_replace(shard))};
  }
  if (shard.leader == id) {
    return core::Error{
        fmt::format("ERR {} leads shard {}: give it another leader first, by `failover {}`; {}",
                    address.text(), shard.name, shard.name, or_replace(shard))};
  }
  take_out(topology, id);
  return checked(std::move(topology));
}

core::Result<Node> plan_failover(const Topology& topology, const std::vector<std::string>& alive,
                                 std::string_view shard_name, const Address* to, bool force) {
  const Shard* shard = topology.shard(shard_name);
  if (shard == nullptr) return unknown_shard(topology, shard_name);
  const auto refuse = [&](std::string_view why) {
    return core::Error{fmt::format("ERR shard {}: {}", shard->name, why)};
  };
  std::string chosen;
  if (to != nullptr) {
    const Node* node = node_at(topology, *to);
    if (node == nullptr || !shard->has_member(node->id)) {
      return refuse(fmt::format("{} is no member", core::printable(to->text())));
    }
    chosen = node->id;
  } else {
    const auto found = std::ranges::find_if(shard->insync, [&](const std::string& id) {
      return id != shard->leader && is_among(alive, id);
    });
    if (found == shard->insync.end()) {
      return refuse("no replica is alive and in sync; " + or_replace(*shard));
    }
    chosen = *found;
  }
  if (chosen == shard->leader) return refuse("this node leads it already");
  if (!shard->is_insync(chosen)) {
    return refuse("this replica is not in sync, writes would be lost; " + or_replace(*shard));
  }
  if (!is_among(alive, chosen)) return refuse("this replica is not alive; " + or_replace(*shard));
  if (!force && !is_among(alive, shard->leader)) {
    return refuse("its leader is not alive; with --force it is not asked");
  }
  return *topology.node(chosen);
}

}  // namespace server::cluster
