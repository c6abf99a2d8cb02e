// SPDX-License-Identifier: MIT
#include "server/cluster_tool/backup.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <exception>
#include <utility>

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr int kBackupFormat = 1;

core::Error fault(std::string_view what) {
  return {fmt::format("ERR {}: {}", kBackupFile, what)};
}

json::object shard_json(const ShardBackup& shard) {
  return {{"file", shard.file()},
          {"leader", shard.leader},
          {"replication_id", shard.snapshot.replication_id},
          {"offset", shard.snapshot.offset},
          {"bytes", shard.snapshot.bytes},
          {"keys", shard.snapshot.keys}};
}

ShardBackup parse_shard_backup(std::string_view name, const json::value& value) {
  const json::object& object = value.as_object();
  ShardBackup shard;
  shard.shard = name;
  shard.leader = json::value_to<std::string>(object.at("leader"));
  shard.snapshot.replication_id = json::value_to<std::string>(object.at("replication_id"));
  shard.snapshot.offset = object.at("offset").to_number<int64_t>();
  shard.snapshot.bytes = object.at("bytes").to_number<uint64_t>();
  shard.snapshot.keys = object.at("keys").to_number<uint64_t>();
  return shard;
}

Backup parse_parts(const json::object& object) {
  Backup backup;
  backup.cluster = json::value_to<std::string>(object.at("cluster"));
  backup.version.revision = object.at("revision").to_number<uint64_t>();
  for (const auto& [name, shard] : object.at("shards").as_object()) {
    backup.shards.push_back(parse_shard_backup(name, shard));
  }
  return backup;
}

}  // namespace

uint64_t Backup::keys_of(std::string_view shard) const {
  const auto found = std::ranges::find(shards, shard, &ShardBackup::shard);
  return found == shards.end() ? 0 : found->snapshot.keys;
}

std::string backup_json(const Backup& backup) {
  json::object shards;
  for (const ShardBackup& shard : backup.shards) shards[shard.shard] = shard_json(shard);
  return json::serialize(
             json::object{{"format", kBackupFormat},
                          {"cluster", backup.cluster},
                          {"revision", backup.version.revision},
                          {"topology", json::parse(topology_json(backup.version.topology))},
                          {"shards", std::move(shards)}}) +
         "\n";
}

core::Result<Backup> parse_backup(std::string_view text) {
  boost::system::error_code failed;
  const json::value document = json::parse(text, failed);
  if (failed || !document.is_object()) return fault("is no JSON object");
  const json::object& object = document.get_object();
  try {
    if (object.at("format").to_number<int>() != kBackupFormat)
      return fault("has an unknown format");
    Backup backup = parse_parts(object);
    auto topology = parse_topology(json::serialize(object.at("topology")));
    if (!topology) return topology.error();
    backup.version.topology = *std::move(topology);
    for (const Shard& shard : backup.version.topology.shards) {
      if (!object.at("shards").as_object().contains(shard.name)) {
        return fault(fmt::format("lacks shard {}", shard.name));
      }
    }
    return backup;
  } catch (const std::exception& error) {
    return fault(fmt::format("a value is missing or wrong ({})", error.what()));
  }
}

core::Result<Topology> plan_restore(const Backup& backup, std::vector<Node> nodes) {
  Topology topology = backup.version.topology;
  const size_t shard_count = topology.shards.size();
  if (nodes.size() < shard_count) {
    return core::Error{fmt::format("ERR the backup has {} shards, and {} servers are named",
                                   shard_count, nodes.size())};
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    Shard& shard = topology.shards[i % shard_count];
    if (i < shard_count) {
      ++shard.epoch;
      shard.leader = nodes[i].id;
      shard.members.clear();
      shard.insync = {nodes[i].id};
    }
    shard.members.push_back(nodes[i].id);
  }
  topology.nodes = std::move(nodes);
  std::ranges::sort(topology.nodes, {}, &Node::id);
  if (auto checked = check_topology(topology); !checked) return checked.error();
  return topology;
}

}  // namespace server::cluster
