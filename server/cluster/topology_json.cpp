// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "core/printable.h"
#include "server/cluster/topology.h"

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr int kFormat = 1;

// Exception that is thrown and caught in this file only. With it, the functions that read nested
// values need not return errors.
struct Fault {
  std::string text;
};

const json::object& as_object(const json::value& value, std::string_view what) {
  if (const json::object* object = value.if_object()) return *object;
  throw Fault{fmt::format("{} is no object", what)};
}

std::string as_text(const json::value& value, std::string_view what) {
  if (const json::string* text = value.if_string()) return {text->data(), text->size()};
  throw Fault{fmt::format("{} is no string", what)};
}

uint64_t as_number(const json::value& value, uint64_t most, std::string_view what) {
  boost::system::error_code failed;
  const auto number = value.to_number<uint64_t>(failed);
  if (failed || number > most) throw Fault{fmt::format("{} is no number up to {}", what, most)};
  return number;
}

std::vector<std::string> as_texts(const json::value& value, std::string_view what) {
  const json::array* items = value.if_array();
  if (items == nullptr) throw Fault{fmt::format("{} is no array", what)};
  std::vector<std::string> texts;
  texts.reserve(items->size());
  for (const json::value& item : *items) texts.push_back(as_text(item, what));
  return texts;
}

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

const json::value& member(const json::object& object, std::string_view name) {
  if (const json::value* value = object.if_contains(name)) return *value;
  throw Fault{fmt::format("'{}' is missing", name)};
}

Shard parse_shard(std::string_view name, const json::value& value) {
  const json::object& object = as_object(value, "a shard");
  Shard shard;
  shard.others = other_members(object, {"epoch", "leader", "members", "insync", "slots"});
  shard.name = name;
  shard.epoch = as_number(member(object, "epoch"), std::numeric_limits<int64_t>::max(), "epoch");
  shard.leader = as_text(member(object, "leader"), "leader");
  shard.members = as_texts(member(object, "members"), "members");
  shard.insync = as_texts(member(object, "insync"), "insync");
  auto slots = parse_slot_ranges(as_text(member(object, "slots"), "slots"));
  if (!slots) throw Fault{std::string(core::without_code(slots.error().message))};
  shard.slots = *std::move(slots);
  return shard;
}

Node parse_node(std::string_view id, const json::value& value) {
  const json::object& object = as_object(value, "a node");
  constexpr uint64_t kPortMax = std::numeric_limits<uint16_t>::max();
  Node node;
  node.id = id;
  node.others = other_members(object, {"ip", "port", "tls", "host"});
  node.ip = as_text(member(object, "ip"), "ip");
  node.port = static_cast<uint16_t>(as_number(member(object, "port"), kPortMax, "port"));
  node.tls_port = static_cast<uint16_t>(as_number(member(object, "tls"), kPortMax, "tls"));
  node.hostname = as_text(member(object, "host"), "host");
  return node;
}

Topology parse_document(const json::value& value) {
  const json::object& object = as_object(value, "the document");
  if (as_number(member(object, "format"), std::numeric_limits<int>::max(), "format") != kFormat) {
    throw Fault{"another format than 1: written by a newer version"};
  }
  Topology topology;
  topology.others = other_members(object, {"format", "shards", "nodes"});
  for (const auto& [name, shard] : as_object(member(object, "shards"), "shards")) {
    topology.shards.push_back(parse_shard(name, shard));
  }
  for (const auto& [id, node] : as_object(member(object, "nodes"), "nodes")) {
    topology.nodes.push_back(parse_node(id, node));
  }
  std::ranges::sort(topology.shards, {}, &Shard::name);
  std::ranges::sort(topology.nodes, {}, &Node::id);
  return topology;
}

json::array texts_json(const std::vector<std::string>& texts) {
  json::array items;
  for (const std::string& text : texts) items.emplace_back(text);
  return items;
}

}  // namespace

core::Result<Topology> parse_topology(std::string_view text) {
  const auto refusal = [](std::string_view fault) {
    return core::Error{fmt::format("ERR topology: {}", fault)};
  };
  if (text.size() > kTopologyBytesMax) return refusal("larger than 1 MiB");
  boost::system::error_code failed;
  const json::value value = json::parse(text, failed);
  if (failed) return refusal("not JSON: " + failed.message());
  try {
    Topology topology = parse_document(value);
    if (auto checked = check_topology(topology); !checked) return checked.error();
    return topology;
  } catch (const Fault& fault) {
    return refusal(fault.text);
  }
}

std::string topology_json(const Topology& topology) {
  json::object shards;
  for (const Shard& shard : topology.shards) {
    json::object members{{"epoch", shard.epoch},
                         {"leader", shard.leader},
                         {"members", texts_json(shard.members)},
                         {"insync", texts_json(shard.insync)},
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
