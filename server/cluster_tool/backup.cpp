// SPDX-License-Identifier: MIT
#include "server/cluster_tool/backup.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "server/cluster/json_fields.h"

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr uint64_t kBackupFormat = 1;

json::object shard_json(const ShardBackup& shard) {
  return {{"file", shard.file()},
          {"leader", shard.leader},
          {"replication_id", shard.snapshot.replication_id},
          {"offset", shard.snapshot.offset},
          {"bytes", shard.snapshot.bytes},
          {"keys", shard.snapshot.keys}};
}

ShardBackup parse_shard_backup(std::string_view name, const json::value& value) {
  const json::object& object = JsonField(value, name).object();
  return {.shard = std::string(name),
          .leader = JsonField(object, "leader").text(),
          .snapshot = {.replication_id = JsonField(object, "replication_id").text(),
                       .offset = static_cast<int64_t>(JsonField(object, "offset").number()),
                       .bytes = JsonField(object, "bytes").number(),
                       .keys = JsonField(object, "keys").number()}};
}

Backup parse_backup_document(const json::object& object) {
  if (JsonField(object, "format").number() != kBackupFormat) {
    throw JsonFault{"has an unknown format"};
  }
  Backup backup;
  backup.cluster = JsonField(object, "cluster").text();
  backup.version.revision = JsonField(object, "revision").number();
  const json::object& shards = JsonField(object, "shards").object();
  for (const auto& [name, shard] : shards) {
    backup.shards.push_back(parse_shard_backup(name, shard));
  }
  auto topology = parse_topology(json::serialize(JsonField(object, "topology").value()));
  if (!topology) throw JsonFault{std::string(core::without_code(topology.error().message))};
  backup.version.topology = *std::move(topology);
  for (const Shard& shard : backup.version.topology.shards) {
    if (!shards.contains(shard.name)) throw JsonFault{fmt::format("lacks shard {}", shard.name)};
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
  return parse_json(kBackupFile, text, 2 * kTopologyBytesMax, parse_backup_document);
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
