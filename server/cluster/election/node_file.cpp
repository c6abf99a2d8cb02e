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

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr int kNodeFileFormat = 1;
constexpr auto kNumberMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

core::Error node_file_fault(std::string_view what) {
  return core::Error{fmt::format("ERR cluster.json: {}", what)};
}

std::optional<std::string> text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

std::optional<uint64_t> number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  boost::system::error_code failed;
  const auto number = value == nullptr ? 0 : value->to_number<uint64_t>(failed);
  if (value == nullptr || failed || number > kNumberMax) return std::nullopt;
  return number;
}

std::optional<Listening> listening_in(const json::object& object) {
  const json::value* const value = object.if_contains("listening");
  if (value == nullptr || !value->is_object()) return std::nullopt;
  const json::object& members = value->get_object();
  const auto port = [&](std::string_view name) {
    return static_cast<uint16_t>(number_of(members, name).value_or(0));
  };
  return Listening{text_of(members, "bind").value_or(""), port("port"), port("tls")};
}

}  // namespace

core::Result<NodeFile> parse_node_file(std::string_view text) {
  boost::system::error_code failed;
  const json::value document = json::parse(text, failed);
  const json::object* object = failed ? nullptr : document.if_object();
  if (object == nullptr) return node_file_fault("is no JSON object");
  if (number_of(*object, "format") != kNodeFileFormat)
    return node_file_fault("has an unknown format");
  const auto id = text_of(*object, "id");
  const auto shard = text_of(*object, "kept_shard");
  const auto epoch = number_of(*object, "kept_epoch");
  const auto revision = number_of(*object, "revision");
  if (!id || !is_node_id(*id)) return node_file_fault("has no id");
  if (!shard || !epoch || !revision) return node_file_fault("lacks a value");
  // A cluster.json of an older version lacks some of these JSON members, which is no error.
  NodeFile file;
  file.id = *id;
  file.kept_shard = *shard;
  file.kept_epoch = *epoch;
  file.etcd_cluster = text_of(*object, "etcd_cluster").value_or("");
  file.cluster = text_of(*object, "cluster").value_or("");
  file.kept_boot = text_of(*object, "kept_boot").value_or("");
  file.listening = listening_in(*object);
  if (*revision == 0) return file;
  const json::value* topology = object->if_contains("topology");
  if (topology == nullptr) return node_file_fault("lacks a value");
  auto parsed = parse_topology(json::serialize(*topology));
  if (!parsed) return parsed.error();
  file.topology = {*std::move(parsed), *revision};
  return file;
}

std::string node_file_text(const NodeFile& file) {
  json::object object;
  object["format"] = kNodeFileFormat;
  object["id"] = file.id;
  object["kept_shard"] = file.kept_shard;
  object["kept_epoch"] = file.kept_epoch;
  object["kept_boot"] = file.kept_boot;
  object["etcd_cluster"] = file.etcd_cluster;
  object["cluster"] = file.cluster;
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

void ask_for_node_file(MemberQueue& queue, std::function<void(std::string line)> done) {
  queue.post([done = std::move(done)](Member& member, int64_t /*now_us*/) {
    NodeFile file{member.id(), member.topology(), member.kept_epoch().shard(),
                  member.kept_epoch().epoch()};
    std::string text = node_file_text(file);
    text.pop_back();  // removes the line end of the text
    done(fmt::format("+{}", text));
  });
}

core::Result<std::optional<NodeFile>> read_node_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<NodeFile>();
  const auto text = persistence::read_whole_file(path, 2 * kTopologyBytesMax);
  if (!text) return text.error();
  auto parsed = parse_node_file(*text);
  if (!parsed) return parsed.error();
  return std::optional(*std::move(parsed));
}

core::Result<> write_node_file(const std::string& path, const NodeFile& file) {
  return persistence::write_file_atomically(path, node_file_text(file));
}

}  // namespace server::cluster
