// SPDX-License-Identifier: MIT
#include "server/cluster_tool/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "server/cluster/router.h"

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr size_t kColumns = 8;
// The time that clients need to reconnect to a server that was restarted. For example, valkey-glide
// waits up to 1.9 s between two attempts, and on a busy machine the attempt itself takes long. A
// server that has served for less than this time counts as starting. If it took over, clients that
// have not reconnected yet would get errors.
constexpr int64_t kReconnectS = 3;
using Row = std::array<std::string, kColumns>;

// The known state of one member of a shard.
struct MemberLine {
  const Node* node = nullptr;
  bool leads = false;
  bool alive = false;
  bool in_sync = false;
  const NodeFacts* facts = nullptr;  // state that the member reports; null: unknown
  std::string why_unknown = {};      // reason why `facts` is null

  // True if another process answers at the member's address, for example a server that was started
  // with an empty directory.
  bool has_new_id() const {
    return facts != nullptr && !facts->node.id.empty() && facts->node.id != node->id;
  }
};

std::vector<MemberLine> member_lines(const ClusterStatus& status, const Shard& shard) {
  std::vector<MemberLine> lines;
  const auto& nodes = status.version.topology.nodes;
  for (const std::string& id : shard.members) {
    MemberLine line;
    line.node = status.version.topology.node(id);
    line.leads = id == shard.leader;
    line.alive = std::ranges::find(status.alive, id) != status.alive.end();
    line.in_sync = shard.is_insync(id);
    const auto index = static_cast<size_t>(line.node - nodes.data());
    if (index < status.facts.size()) {
      const auto& facts = status.facts[index];
      if (facts) line.facts = &*facts;
      if (!facts) line.why_unknown = core::without_code(facts.error().message);
    }
    lines.push_back(line);
  }
  // The leader comes first, the other members in the order in which they joined.
  std::stable_partition(lines.begin(), lines.end(), std::mem_fn(&MemberLine::leads));
  return lines;
}

std::string address_of(const Node& node) {
  return Address{node.ip, static_cast<uint16_t>(port_of(node, false))}.text();
}

std::string_view state_of(const MemberLine& line) {
  if (!line.alive && line.has_new_id()) return "registered under a new id";
  if (!line.alive) return line.facts == nullptr ? "down" : "not registered";
  if (line.facts == nullptr) return "no answer";
  // The server's own report takes precedence over the topology's list of members in sync, because
  // that list may be out of date.
  if (line.facts->is_loading) return "loading";
  if (!line.facts->log_works) return "refuses writes";
  if (line.leads) return line.facts->cluster_state == "fail" ? "no permit" : "ok";
  if (!line.facts->link_is_up) return "link down";
  if (line.facts->since_ready_s < kReconnectS) return "starting";
  return line.in_sync ? "in sync" : "not in sync";
}

// Returns how many bytes a replica lags behind its leader; nullopt if the replica or its leader has
// not answered.
std::optional<int64_t> lag_of(const MemberLine& line, const MemberLine& leader) {
  if (line.leads || line.facts == nullptr || leader.facts == nullptr) return std::nullopt;
  return std::max<int64_t>(0, leader.facts->offset - line.facts->offset);
}

std::vector<Row> rows_of(const ClusterStatus& status) {
  std::vector<Row> rows{{"SHARD", "SLOTS", "NODE", "ROLE", "STATE", "LAG", "KEYS", "VERSION"}};
  for (const Shard& shard : status.version.topology.shards) {
    const auto lines = member_lines(status, shard);
    for (const MemberLine& line : lines) {
      const auto lag = lag_of(line, lines.front());
      rows.push_back({line.leads ? shard.name : "", line.leads ? slot_ranges_text(shard.slots) : "",
                      address_of(*line.node), line.leads ? "leader" : "replica",
                      std::string(state_of(line)), lag ? fmt::to_string(*lag) : "",
                      line.facts != nullptr ? fmt::to_string(line.facts->keys) : "",
                      line.facts != nullptr ? line.facts->version : ""});
    }
  }
  return rows;
}

// Returns a line for each server whose state is unknown, with the reason.
std::string unknown_states(const ClusterStatus& status) {
  std::string text;
  for (const auto& facts : status.facts) {
    if (!facts) text += fmt::format("{}\n", core::without_code(facts.error().message));
  }
  return text;
}

json::value or_null(const auto& number) {
  return number ? json::value(*number) : json::value(nullptr);
}

json::object failovers_json(const NodeFacts& facts) {
  json::object counts;
  for (size_t i = 0; i < kFailoverCauses.size(); ++i) {
    counts[kFailoverCauses[i]] = facts.failovers[i];
  }
  return counts;
}

json::object node_json(const MemberLine& line, const MemberLine& leader) {
  json::object node{{"id", line.node->id},
                    {"address", address_of(*line.node)},
                    {"role", line.leads ? "leader" : "replica"},
                    {"alive", line.alive},
                    {"in_sync", line.in_sync},
                    {"state", state_of(line)}};
  const NodeFacts* const facts = line.facts;
  node["offset"] = facts == nullptr ? json::value(nullptr) : json::value(facts->offset);
  node["lag"] = or_null(lag_of(line, leader));
  node["keys"] = facts == nullptr ? json::value(nullptr) : json::value(facts->keys);
  if (facts == nullptr) {
    node["error"] = line.why_unknown;
    return node;
  }
  node["version"] = facts->version;
  node["failovers"] = failovers_json(*facts);
  node["permit_lapses"] = facts->permit_lapses;
  return node;
}

}  // namespace

bool ClusterStatus::is_whole() const {
  return std::ranges::all_of(version.topology.shards, [&](const Shard& shard) {
    return std::ranges::find(alive, shard.leader) != alive.end();
  });
}

size_t ClusterStatus::disagreeing() const {
  return static_cast<size_t>(std::ranges::count_if(facts, [](const auto& node) {
    return node && (node->topology_state == "older" || node->topology_state == "absent");
  }));
}

std::string status_table(const ClusterStatus& status) {
  const std::vector<Row> rows = rows_of(status);
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = fmt::format("cluster {}, revision {}, {} shards, {} nodes\n\n", status.name,
                                 status.version.revision, status.version.topology.shards.size(),
                                 status.version.topology.nodes.size());
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  if (const std::string unknown = unknown_states(status); !unknown.empty()) text += "\n" + unknown;
  if (const size_t count = status.disagreeing(); count != 0) {
    text += fmt::format(
        "\n{} servers keep a newer topology than etcd: no replica takes over before `recover`.\n",
        count);
  }
  if (!status.is_whole()) text += "\nA shard has no live leader: its slots are not served.\n";
  return text;
}

std::string status_json(const ClusterStatus& status) {
  json::array shards;
  for (const Shard& shard : status.version.topology.shards) {
    json::array nodes;
    const auto lines = member_lines(status, shard);
    std::optional<int64_t> behind;
    for (const MemberLine& line : lines) {
      nodes.push_back(node_json(line, lines.front()));
      const auto lag = line.in_sync ? lag_of(line, lines.front()) : std::nullopt;
      if (lag) behind = std::max(behind.value_or(0), *lag);
    }
    shards.push_back(json::object{{"name", shard.name},
                                  {"epoch", shard.epoch},
                                  {"slots", slot_ranges_text(shard.slots)},
                                  {"members_in_sync", shard.insync.size()},
                                  {"bytes_behind", or_null(behind)},
                                  {"nodes", std::move(nodes)}});
  }
  return json::serialize(json::object{{"cluster", status.name},
                                      {"revision", status.version.revision},
                                      {"whole", status.is_whole()},
                                      {"topology_valid", status.disagreeing() == 0},
                                      {"shards", std::move(shards)}}) +
         "\n";
}

}  // namespace server::cluster
