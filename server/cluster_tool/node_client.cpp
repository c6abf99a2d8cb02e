// SPDX-License-Identifier: MIT
#include "server/cluster_tool/node_client.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "core/number.h"
#include "core/printable.h"
#include "server/base/transport/tls_files.h"

namespace server::cluster {
namespace {

constexpr std::chrono::seconds kStepLimit{3};
// Number of commands that are sent before their replies are read. Their replies must fit into the
// buffers of the sockets.
constexpr size_t kPipelineMax = 256;

int64_t number_field(std::string_view text, std::string_view name) {
  return core::parse_int64(info_field(text, name)).value_or(0);
}

// Creates a context for TLS. Errors: a certificate or key file named by the options cannot be used.
core::Result<std::shared_ptr<SSL_CTX>> tls_context(const NodeAccess& access) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (context == nullptr) return core::Error{"ERR TLS cannot be initialized"};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  core::Result<> loaded;
  if (!access.ca_file.empty()) {
    loaded = trust_file(context.get(), {access.ca_file, "--node-cacert"});
  } else if (SSL_CTX_set_default_verify_paths(context.get()) != 1) {
    loaded = openssl_error("Failed to load CA certificates");
  }
  if (loaded && !access.cert_file.empty()) {
    loaded = use_certificate_chain(context.get(), {access.cert_file, "--node-cert"});
    if (loaded) loaded = use_private_key(context.get(), {access.key_file, "--node-key"}, "");
  }
  if (!loaded) return loaded.error();
  return context;
}

// Returns the value of the option; empty if the server does not allow CONFIG.
std::string option_of(NodeClient& client, const std::string& option) {
  const auto reply = client.call({"CONFIG", "GET", option});
  if (!reply || reply->elements.size() != 2) return {};
  return reply->elements[1].text;
}

// Reads the server's ports and its cluster-announce-* options, and applies them to the node. If the
// server does not allow CONFIG, the node has only the address and port of this connection.
void apply_announced(NodeClient& client, Node& node, bool uses_tls) {
  const auto value_of = [&](const std::string& option) { return option_of(client, option); };
  const auto port_of = [&](const std::string& option) {
    return static_cast<uint16_t>(core::parse_int64(value_of(option)).value_or(0));
  };
  if (uses_tls) {
    node.tls_port = std::exchange(node.port, port_of("port"));
  } else {
    node.tls_port = port_of("tls-port");
  }
  if (const std::string ip = value_of("cluster-announce-ip"); !ip.empty()) node.ip = ip;
  if (const uint16_t port = port_of("cluster-announce-port"); port != 0) node.port = port;
  if (const uint16_t port = port_of("cluster-announce-tls-port"); port != 0) node.tls_port = port;
  node.hostname = value_of("cluster-announce-hostname");
}

}  // namespace

NodeClient::NodeClient(std::string name) : name_(std::move(name)), link_(kStepLimit) {}

core::Result<NodeClient> NodeClient::connect(const Address& address, const NodeAccess& access) {
  NodeClient client(address.text());
  ClientSocket::Target target{.host = address.host, .port = address.port};
  target.uses_tls = access.uses_tls;
  if (access.uses_tls) {
    auto context = tls_context(access);
    if (!context) return client.failure(context.error().message);
    target.tls = *std::move(context);
  }
  auto done = client.link_.connect(target);
  if (done) done = client.link_.authenticate(access.user, access.password);
  if (!done) return client.failure(done.error().message);
  return client;
}

core::Error NodeClient::failure(std::string_view why) const {
  return {fmt::format("ERR {}: {}", core::printable(name_), core::printable(why))};
}

core::Result<protocol::Reply> NodeClient::call(const std::vector<std::string>& words) {
  if (auto sent = send(words); !sent) return sent.error();
  return read_reply();
}

core::Result<protocol::Reply> NodeClient::read_reply() {
  auto reply = named(link_.read_reply());
  if (reply && reply->is_error()) return failure(reply->text);
  return reply;
}

core::Result<std::vector<protocol::Reply>> NodeClient::call_all(
    std::span<const std::vector<std::string>> commands) {
  std::vector<protocol::Reply> replies;
  while (!commands.empty()) {
    const auto batch = commands.first(std::min(commands.size(), kPipelineMax));
    commands = commands.subspan(batch.size());
    for (const auto& words : batch) {
      if (auto sent = send(words); !sent) return sent.error();
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      auto reply = read_reply();
      if (!reply) return reply.error();
      replies.push_back(*std::move(reply));
    }
  }
  return replies;
}

std::string_view info_field(std::string_view text, std::string_view name) {
  const std::string begin = fmt::format("{}:", name);
  const size_t found = text.starts_with(begin) ? 0 : text.find("\n" + begin);
  if (found == std::string_view::npos) return {};
  const std::string_view value = text.substr(text.find(':', found) + 1);
  return value.substr(0, value.find_first_of("\r\n"));
}

core::Result<NodeFacts> ask_node(const Address& address, const NodeAccess& access) {
  auto client = NodeClient::connect(address, access);
  if (!client) return client.error();
  NodeFacts facts;
  facts.node.ip = address.host;
  facts.node.port = address.port;
  const auto info = client->call({"INFO"});
  if (!info) return info.error();
  facts.in_cluster_mode = info_field(info->text, "cluster_enabled") == "1";
  facts.role = info_field(info->text, "role");
  facts.offset = number_field(info->text, "master_repl_offset");
  // Servers of earlier versions do not have the field seconds_since_ready.
  const bool has_field = !info_field(info->text, "seconds_since_ready").empty();
  facts.since_ready_s =
      number_field(info->text, has_field ? "seconds_since_ready" : "uptime_in_seconds");
  facts.version = info_field(info->text, "bloomery_version");
  facts.is_loading = info_field(info->text, "loading") == "1";
  facts.log_works = info_field(info->text, "aof_last_write_status") != "err";
  facts.link_is_up = info_field(info->text, "master_link_status") != "down";
  if (!facts.in_cluster_mode || facts.is_loading) return facts;
  const auto id = client->call({"CLUSTER", "MYID"});
  if (!id) return id.error();
  facts.node.id = id->text;
  if (!is_node_id(facts.node.id)) {
    return core::Error{fmt::format("ERR {}: '{}' is no node id", address.text(),
                                   core::printable(facts.node.id.substr(0, 100)))};
  }
  const auto keys = client->call({"DBSIZE"});
  if (!keys) return keys.error();
  facts.keys = keys->integer;
  // A server outside the topology reports 0 as DBSIZE, so INFO's count is used.
  std::string_view stored = info_field(info->text, "db0");
  if (stored.starts_with("keys=")) {
    stored = stored.substr(stored.find('=') + 1);
    facts.stored_keys = core::parse_int64(stored.substr(0, stored.find(','))).value_or(0);
  }
  if (const auto cluster = client->call({"CLUSTER", "INFO"})) {
    facts.cluster_state = info_field(cluster->text, "cluster_state");
    facts.topology_state = info_field(cluster->text, "cluster_topology");
    for (size_t i = 0; i < kFailoverCauses.size(); ++i) {
      facts.failovers[i] =
          number_field(cluster->text, fmt::format("cluster_failovers_{}", kFailoverCauses[i]));
    }
    facts.permit_lapses = number_field(cluster->text, "cluster_permit_lapses");
    facts.topology_epoch = number_field(cluster->text, "cluster_current_epoch");
  }
  apply_announced(*client, facts.node, access.uses_tls);
  return facts;
}

core::Result<NodeFile> ask_kept(const Address& address, const NodeAccess& access) {
  auto client = NodeClient::connect(address, access);
  if (!client) return client.error();
  const auto reply = client->call({"CLUSTERX", "TOPOLOGY"});
  if (!reply) return reply.error();
  auto file = parse_node_file(reply->text);
  if (!file) {
    return core::Error{
        fmt::format("ERR {}: {}", address.text(), core::without_code(file.error().message))};
  }
  // A server starts only if the name in its cluster.json is empty or equal to this option.
  if (file->cluster.empty()) file->cluster = option_of(*client, "cluster-name");
  return file;
}

}  // namespace server::cluster
