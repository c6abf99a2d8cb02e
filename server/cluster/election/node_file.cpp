// SPDX-License-Identifier: MIT
#include "server/cluster/election/node_file.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <filesystem>
#include <limits>
#include <system_error>

#include "persistence/files/file.h"
#include "server/cluster/election/member.h"
#include "server/cluster/election/member_queue.h"
#include "server/cluster/json_fields.h"

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr uint64_t kNodeFileFormat = 1;
constexpr size_t kNodeFileBytesMax = 2 * kTopologyBytesMax;

std::optional<Listening> listening_in(const json::object& object) {
  const JsonField field(object, "listening");
  if (!field.exists()) return std::nullopt;
  const json::object& members = field.object();
  const auto port = [&](std::string_view name) {
    constexpr uint64_t kPortMax = std::numeric_limits<uint16_t>::max();
    return static_cast<uint16_t>(JsonField(members, name).number_or(0, kPortMax));
  };
  return Listening{JsonField(members, "bind").text_or(""), port("port"), port("tls")};
}

NodeFile parse_node_document(const json::object& object) {
  if (JsonField(object, "format").number() != kNodeFileFormat) {
    throw JsonFault{"has an unknown format"};
  }
  NodeFile file;
  file.id = JsonField(object, "id").text();
  if (!is_node_id(file.id)) throw JsonFault{"has no id"};
  file.kept_shard = JsonField(object, "kept_shard").text();
  file.kept_epoch = JsonField(object, "kept_epoch").number();
  file.topology.revision = JsonField(object, "revision").number();
  // A cluster.json of an older version lacks some of these JSON members, which is not an error.
  file.etcd_cluster = JsonField(object, "etcd_cluster").text_or("");
  file.cluster = JsonField(object, "cluster").text_or("");
  file.kept_boot = JsonField(object, "kept_boot").text_or("");
  file.listening = listening_in(object);
  if (file.topology.revision == 0) return file;
  auto parsed = parse_topology(json::serialize(JsonField(object, "topology").value()));
  if (!parsed) throw JsonFault{std::string(core::without_code(parsed.error().message))};
  file.topology.topology = *std::move(parsed);
  return file;
}

}  // namespace

core::Result<NodeFile> parse_node_file(std::string_view text) {
  return parse_json("cluster.json", text, kNodeFileBytesMax, parse_node_document);
}

std::string node_file_text(const NodeFile& file) {
  json::object object{{"format", kNodeFileFormat},     {"id", file.id},
                      {"kept_shard", file.kept_shard}, {"kept_epoch", file.kept_epoch},
                      {"kept_boot", file.kept_boot},   {"etcd_cluster", file.etcd_cluster},
                      {"cluster", file.cluster}};
  if (file.listening) {
    object["listening"] = {{"bind", file.listening->bind},
                           {"port", file.listening->port},
                           {"tls", file.listening->tls_port}};
  }
  object["revision"] = file.topology.revision;
  if (file.topology.revision != 0) {
    object["topology"] = json::parse(topology_json(file.topology.topology));
  }
  return json::serialize(object) + "\n";
}

bool holds(const NodeFile& file, const TopologyVersion& version) {
  return file.topology.revision == version.revision && !supersedes(version, file.topology);
}

void ask_for_node_file(MemberQueue& queue, std::string cluster,
                       std::function<void(std::string line)> done) {
  queue.post(
      [cluster = std::move(cluster), done = std::move(done)](Member& member, int64_t /*now_us*/) {
        NodeFile file{member.id(), member.topology(), member.kept_epoch().shard(),
                      member.kept_epoch().epoch()};
        file.cluster = cluster;
        std::string text = node_file_text(file);
        text.pop_back();  // removes the line end of the text
        done(fmt::format("+{}", text));
      });
}

core::Result<std::optional<NodeFile>> read_node_file(const std::string& path) {
  std::error_code error;
  // After an error it is unknown whether the file exists, and reading it reports why.
  if (!std::filesystem::exists(path, error) && !error) return std::optional<NodeFile>();
  const auto text = persistence::read_whole_file(path, kNodeFileBytesMax);
  if (!text) return text.error();
  auto parsed = parse_node_file(*text);
  if (!parsed) return parsed.error();
  return std::optional(*std::move(parsed));
}

core::Result<> write_node_file(const std::string& path, const NodeFile& file) {
  return persistence::write_file_atomically(path, node_file_text(file));
}

}  // namespace server::cluster
