// SPDX-License-Identifier: MIT
#include "server/cluster/tool/node_client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/number.h"
#include "core/printable.h"

namespace server::cluster {
namespace {

constexpr timeval kCallLimit{.tv_sec = 3, .tv_usec = 0};
constexpr size_t kReplyBytesMax = 4 * 1024 * 1024;

// -1, and errno says why.
int connect_to(const addrinfo& address) {
  const int descriptor =
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (descriptor < 0) return -1;
  // The limit of sending is that of connecting, too.
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &kCallLimit, sizeof kCallLimit);
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kCallLimit, sizeof kCallLimit);
  if (::connect(descriptor, address.ai_addr, address.ai_addrlen) == 0) return descriptor;
  const int reason = errno == EINPROGRESS ? ETIMEDOUT : errno;
  ::close(descriptor);
  errno = reason;
  return -1;
}

std::string encode(const std::vector<std::string>& words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) text += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return text;
}

int64_t number_field(std::string_view text, std::string_view name) {
  return core::parse_int64(info_field(text, name)).value_or(0);
}

// The options that say how clients reach a node; nothing of them if CONFIG is not allowed.
void apply_announced(NodeClient& client, Node& node) {
  const auto value_of = [&](const std::string& option) -> std::string {
    const auto reply = client.call({"CONFIG", "GET", option});
    if (!reply || reply->elements.size() != 2) return {};
    return reply->elements[1].text;
  };
  const auto port_of = [&](const std::string& option) {
    return static_cast<uint16_t>(core::parse_int64(value_of(option)).value_or(0));
  };
  node.tls_port = port_of("tls-port");
  if (const std::string ip = value_of("cluster-announce-ip"); !ip.empty()) node.ip = ip;
  if (const uint16_t port = port_of("cluster-announce-port"); port != 0) node.port = port;
  if (const uint16_t port = port_of("cluster-announce-tls-port"); port != 0) node.tls_port = port;
  node.hostname = value_of("cluster-announce-hostname");
}

}  // namespace

core::Result<NodeClient> NodeClient::connect(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  const auto refusal = [&](std::string_view why) {
    return core::Error{fmt::format("ERR {}: {}", core::printable(address.text()), why)};
  };
  if (failed != 0) return refusal(::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  int descriptor = -1;
  for (const addrinfo* each = list; each != nullptr && descriptor < 0; each = each->ai_next) {
    descriptor = connect_to(*each);
  }
  if (descriptor < 0) return refusal(std::strerror(errno));
  NodeClient client(descriptor, address.text());
  if (const char* password = std::getenv("REDISCLI_AUTH"); password != nullptr) {
    if (const auto reply = client.call({"AUTH", password}); !reply) return reply.error();
  }
  return client;
}

NodeClient::~NodeClient() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

NodeClient::NodeClient(NodeClient&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      input_(std::move(other.input_)),
      parser_(std::move(other.parser_)) {}

core::Error NodeClient::failure(std::string_view why) const {
  return {fmt::format("ERR {}: {}", core::printable(name_), core::printable(why))};
}

core::Result<protocol::Reply> NodeClient::call(const std::vector<std::string>& words) {
  const std::string request = encode(words);
  for (size_t sent = 0; sent < request.size();) {
    const ssize_t size =
        ::send(descriptor_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (size <= 0) return failure(std::strerror(errno));
    sent += static_cast<size_t>(size);
  }
  char buffer[16 * 1024];
  while (true) {
    const auto status = parser_.parse(input_);
    input_.erase(0, parser_.consumed());
    if (status == protocol::ReplyParser::Status::kError) return failure(parser_.error());
    if (status == protocol::ReplyParser::Status::kReply) {
      protocol::Reply reply = std::move(parser_.reply());
      if (reply.is_error()) return failure(reply.text);
      return reply;
    }
    const ssize_t size = ::recv(descriptor_, buffer, sizeof buffer, 0);
    if (size == 0) return failure("the connection was closed");
    if (size < 0) return failure(errno == EAGAIN ? "no answer in time" : std::strerror(errno));
    input_.append(buffer, static_cast<size_t>(size));
    if (input_.size() > kReplyBytesMax) return failure("the reply is too large");
  }
}

std::string_view info_field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(name.size() + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }
  return {};
}

core::Result<NodeFacts> ask_node(const Address& address) {
  auto client = NodeClient::connect(address);
  if (!client) return client.error();
  NodeFacts facts;
  facts.node.ip = address.host;
  facts.node.port = address.port;
  const auto info = client->call({"INFO"});
  if (!info) return info.error();
  facts.in_cluster_mode = info_field(info->text, "cluster_enabled") == "1";
  facts.role = info_field(info->text, "role");
  facts.offset = number_field(info->text, "master_repl_offset");
  if (!facts.in_cluster_mode) return facts;
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
  if (const auto cluster = client->call({"CLUSTER", "INFO"})) {
    facts.cluster_state = info_field(cluster->text, "cluster_state");
    facts.topology_epoch = number_field(cluster->text, "cluster_current_epoch");
  }
  apply_announced(*client, facts.node);
  return facts;
}

}  // namespace server::cluster
