// SPDX-License-Identifier: MIT
#include "server/cluster/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/keyspace/slot.h"
#include "core/printable.h"

namespace server::cluster {
namespace {

using core::keyspace::kSlotCount;

constexpr size_t kNodeIdDigits = 40;
constexpr size_t kShardNameMax = 32;
constexpr size_t kHostMax = 253;  // the longest host name by RFC 1035

template <class Items>
auto* find_by(Items& items, std::string_view wanted, auto member) {
  const auto found =
      std::ranges::find_if(items, [&](const auto& item) { return item.*member == wanted; });
  return found == items.end() ? nullptr : &*found;
}

bool contains(const std::vector<std::string>& ids, std::string_view id) {
  return std::ranges::find(ids, id) != ids.end();
}

// Accepts only host names that a reply to a client can contain without quotes.
bool is_host(std::string_view host) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:_";
  return host.size() <= kHostMax && host.find_first_not_of(kAllowed) == std::string_view::npos;
}

template <class... Arguments>
core::Error fault(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return {"ERR topology: " + fmt::format(format, std::forward<Arguments>(arguments)...)};
}

core::Result<> check_nodes(const Topology& topology) {
  std::set<std::pair<std::string_view, uint16_t>> addresses;
  std::string_view before;
  for (const Node& node : topology.nodes) {
    if (!is_node_id(node.id)) {
      return fault("node '{}': an id is 40 hexadecimal digits", core::printable(node.id));
    }
    if (node.id <= before) return fault("node {} is out of order", node.id);
    before = node.id;
    if (node.ip.empty() || !is_host(node.ip)) return fault("node {} has no valid ip", node.id);
    if (!is_host(node.hostname)) return fault("node {} has no valid hostname", node.id);
    if (node.port == 0 && node.tls_port == 0) return fault("node {} has no port", node.id);
    for (const uint16_t port : {node.port, node.tls_port}) {
      if (port != 0 && !addresses.emplace(node.ip, port).second) {
        return fault("two nodes have the address {}:{}", node.ip, port);
      }
    }
  }
  return {};
}

core::Result<> check_members(const Topology& topology, const Shard& shard,
                             std::set<std::string_view>& placed) {
  for (const std::string& id : shard.members) {
    if (topology.node(id) == nullptr) {
      return fault("shard {} names the unknown node '{}'", shard.name, core::printable(id));
    }
    if (!placed.insert(id).second) return fault("node {} has two places", id);
  }
  std::set<std::string_view> insync;
  for (const std::string& id : shard.insync) {
    if (!shard.has_member(id) || !insync.insert(id).second) {
      return fault("shard {}: '{}' of insync is no member, or named twice", shard.name,
                   core::printable(id));
    }
  }
  if (!shard.is_insync(shard.leader)) {
    return fault("the leader of shard {} is not among those in sync", shard.name);
  }
  return {};
}

core::Result<> check_slots(const Topology& topology) {
  std::map<unsigned, unsigned> owned;  // the last slot of each range, by its first slot
  for (const Shard& shard : topology.shards) {
    unsigned next = 0;
    for (const SlotRange& range : shard.slots) {
      if (range.first < next || range.last < range.first || range.last >= kSlotCount) {
        return fault("shard {}: its slots are no ascending ranges", shard.name);
      }
      next = range.last + 1;
      if (!owned.emplace(range.first, range.last).second) {
        return fault("slot {} has two owners", range.first);
      }
    }
  }
  unsigned next = 0;
  for (const auto& [first, last] : owned) {
    if (first > next) return fault("slot {} has no owner", next);
    if (first < next) return fault("slot {} has two owners", first);
    next = last + 1;
  }
  if (next < kSlotCount) return fault("slot {} has no owner", next);
  return {};
}

}  // namespace

bool Shard::has_member(std::string_view id) const {
  return contains(members, id);
}

bool Shard::is_insync(std::string_view id) const {
  return contains(insync, id);
}

const Node* Topology::node(std::string_view id) const {
  return find_by(nodes, id, &Node::id);
}

Node* Topology::node(std::string_view id) {
  return find_by(nodes, id, &Node::id);
}

const Shard* Topology::shard(std::string_view name) const {
  return find_by(shards, name, &Shard::name);
}

Shard* Topology::shard(std::string_view name) {
  return find_by(shards, name, &Shard::name);
}

const Shard* Topology::shard_of(std::string_view node_id) const {
  const auto found =
      std::ranges::find_if(shards, [&](const Shard& shard) { return shard.has_member(node_id); });
  return found == shards.end() ? nullptr : &*found;
}

bool supersedes(const TopologyVersion& seen, const TopologyVersion& known) {
  const bool is_later = seen.revision > known.revision;
  for (const Shard& before : known.topology.shards) {
    const Shard* const now = seen.topology.shard(before.name);
    if (now != nullptr && now->epoch < before.epoch) return false;
    const bool has_grown = now != nullptr && now->epoch > before.epoch;
    if (!is_later && !has_grown) return false;
  }
  return is_later || !known.topology.shards.empty();
}

bool is_node_id(std::string_view id) {
  return id.size() == kNodeIdDigits &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_shard_name(std::string_view name) {
  return !name.empty() && name.size() <= kShardNameMax &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string_view::npos;
}

core::Result<> check_topology(const Topology& topology) {
  if (auto checked = check_nodes(topology); !checked) return checked;
  std::set<std::string_view> placed;
  std::string_view before;
  for (const Shard& shard : topology.shards) {
    if (!is_shard_name(shard.name)) {
      return fault("shard '{}': a name is 1 to 32 of a-z, 0-9, '-', '_'",
                   core::printable(shard.name));
    }
    if (shard.name <= before) return fault("shard {} is out of order", shard.name);
    before = shard.name;
    if (auto checked = check_members(topology, shard, placed); !checked) return checked;
  }
  if (placed.size() < topology.nodes.size()) {
    const auto idle = std::ranges::find_if(
        topology.nodes, [&](const Node& node) { return !placed.contains(node.id); });
    return fault("node {} belongs to no shard", idle->id);
  }
  return check_slots(topology);
}

}  // namespace server::cluster
