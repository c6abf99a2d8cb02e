// SPDX-License-Identifier: MIT
#include <algorithm>
#include <boost/json.hpp>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "server/cluster/json_fields.h"
#include "server/cluster/topology.h"

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr uint64_t kFormat = 1;

// Returns the JSON members that this version does not know, as a JSON object. They are written back
// with the next change, so that a newer server does not lose them.
std::string other_members(const json::object& object,
                          std::initializer_list<std::string_view> known) {
  json::object others;
  for (const auto& member : object) {
    const bool is_known = std::ranges::find(known, std::string_view(member.key())) != known.end();
    if (!is_known) others.emplace(member.key(), member.value());
  }
  return others.empty() ? "" : json::serialize(others);
}

void add_other_members(json::object& object, const std::string& others) {
  if (others.empty()) return;
  const json::value parsed = json::parse(others);
  for (const auto& [name, value] : parsed.as_object()) object.emplace(name, value);
}

Shard parse_shard(std::string_view name, const json::value& value) {
  const json::object& object = JsonField(value, name).object();
  Shard shard;
  shard.others = other_members(object, {"epoch", "leader", "members", "insync", "slots"});
  shard.name = name;
  shard.epoch = JsonField(object, "epoch").number();
  shard.leader = JsonField(object, "leader").text();
  shard.members = JsonField(object, "members").texts();
  shard.insync = JsonField(object, "insync").texts();
  auto slots = parse_slot_ranges(JsonField(object, "slots").text());
  if (!slots) throw JsonFault{std::string(core::without_code(slots.error().message))};
  shard.slots = *std::move(slots);
  return shard;
}

Node parse_node(std::string_view id, const json::value& value) {
  const json::object& object = JsonField(value, id).object();
  constexpr uint64_t kPortMax = std::numeric_limits<uint16_t>::max();
  return {.id = std::string(id),
          .ip = JsonField(object, "ip").text(),
          .port = static_cast<uint16_t>(JsonField(object, "port").number(kPortMax)),
          .tls_port = static_cast<uint16_t>(JsonField(object, "tls").number(kPortMax)),
          .hostname = JsonField(object, "host").text(),
          .others = other_members(object, {"ip", "port", "tls", "host"})};
}

Topology parse_topology_document(const json::object& object) {
  if (JsonField(object, "format").number() != kFormat) {
    throw JsonFault{"another format than 1: written by a newer version"};
  }
  Topology topology;
  topology.others = other_members(object, {"format", "shards", "nodes"});
  for (const auto& [name, shard] : JsonField(object, "shards").object()) {
    topology.shards.push_back(parse_shard(name, shard));
  }
  for (const auto& [id, node] : JsonField(object, "nodes").object()) {
    topology.nodes.push_back(parse_node(id, node));
  }
  std::ranges::sort(topology.shards, {}, &Shard::name);
  std::ranges::sort(topology.nodes, {}, &Node::id);
  return topology;
}

}  // namespace

core::Result<Topology> parse_topology(std::string_view text) {
  auto topology = parse_json("topology", text, kTopologyBytesMax, parse_topology_document);
  if (!topology) return topology;
  if (auto checked = check_topology(*topology); !checked) return checked.error();
  return topology;
}

std::string topology_json(const Topology& topology) {
  json::object shards;
  for (const Shard& shard : topology.shards) {
    json::object members{{"epoch", shard.epoch},
                         {"leader", shard.leader},
                         {"members", json::value_from(shard.members)},
                         {"insync", json::value_from(shard.insync)},
                         {"slots", slot_ranges_text(shard.slots)}};
    add_other_members(members, shard.others);
    shards[shard.name] = std::move(members);
  }
  json::object nodes;
  for (const Node& node : topology.nodes) {
    json::object members{
        {"ip", node.ip}, {"port", node.port}, {"tls", node.tls_port}, {"host", node.hostname}};
    add_other_members(members, node.others);
    nodes[node.id] = std::move(members);
  }
  json::object document{
      {"format", kFormat}, {"shards", std::move(shards)}, {"nodes", std::move(nodes)}};
  add_other_members(document, topology.others);
  return json::serialize(document);
}

}  // namespace server::cluster
