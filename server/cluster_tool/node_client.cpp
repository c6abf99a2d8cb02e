// SPDX-License-Identifier: MIT
#include "server/cluster_tool/node_client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/number.h"
#include "core/printable.h"
#include "server/base/transport/tls_files.h"

namespace server::cluster {
namespace {

constexpr timeval kCallLimit{.tv_sec = 3, .tv_usec = 0};
constexpr size_t kReplyBytesMax = 4 * 1024 * 1024;

// Connects to the address, and returns the socket's descriptor; -1 after an error, which errno
// names.
int connect_to(const addrinfo& address) {
  const int descriptor =
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (descriptor < 0) return -1;
  // SO_SNDTIMEO also limits the time to connect.
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

struct ContextEnd {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

std::string tls_failure() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "TLS failed";
  const char* reason = ERR_reason_error_string(code);
  return fmt::format("TLS: {}", reason == nullptr ? "failed" : reason);
}

// Creates a context for TLS. Errors: a certificate or key file named by the options cannot be used.
core::Result<std::unique_ptr<SSL_CTX, ContextEnd>> tls_context(const NodeAccess& access) {
  std::unique_ptr<SSL_CTX, ContextEnd> context(SSL_CTX_new(TLS_client_method()));
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
  if (!loaded) return core::Error{"ERR " + loaded.error().message};
  return {boost::system::in_place_value, std::move(context)};
}

// Reads the server's ports and its cluster-announce-* options, and applies them to the node. If the
// server does not allow CONFIG, the node has only the address and port of this connection.
void apply_announced(NodeClient& client, Node& node, bool uses_tls) {
  const auto value_of = [&](const std::string& option) -> std::string {
    const auto reply = client.call({"CONFIG", "GET", option});
    if (!reply || reply->elements.size() != 2) return {};
    return reply->elements[1].text;
  };
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

core::Result<NodeClient> NodeClient::connect(const Address& address, const NodeAccess& access) {
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
  if (auto begun = client.begin_tls(access); !begun) return begun.error();
  if (auto known = client.authenticate(access); !known) return known.error();
  return client;
}

void NodeClient::TlsEnd::operator()(SSL* tls) const {
  SSL_free(tls);
}

core::Result<> NodeClient::begin_tls(const NodeAccess& access) {
  if (!access.uses_tls) return {};
  const auto context = tls_context(access);
  if (!context) return context.error();
  tls_.reset(SSL_new(context->get()));
  if (SSL_set_fd(tls_.get(), descriptor_) == 1 && SSL_connect(tls_.get()) == 1) return {};
  const long verified = SSL_get_verify_result(tls_.get());
  if (verified == X509_V_OK) return failure(tls_failure());
  return failure(fmt::format("its certificate: {}", X509_verify_cert_error_string(verified)));
}

core::Result<> NodeClient::authenticate(const NodeAccess& access) {
  if (access.password.empty()) return {};
  std::vector<std::string> words{"AUTH"};
  if (!access.user.empty()) words.push_back(access.user);
  words.push_back(access.password);
  if (const auto reply = call(words); !reply) return reply.error();
  return {};
}

int64_t NodeClient::write(std::string_view bytes) {
  if (tls_ != nullptr) return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
  return ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

int64_t NodeClient::read(char* room, size_t size) {
  if (tls_ == nullptr) return ::recv(descriptor_, room, size, 0);
  const int count = SSL_read(tls_.get(), room, static_cast<int>(size));
  if (count > 0) return count;
  return SSL_get_error(tls_.get(), count) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

// Returns why write() or read() has failed.
std::string NodeClient::last_failure() const {
  const int reason = errno;
  if (reason == EAGAIN) return "no answer in time";
  return tls_ != nullptr && ERR_peek_error() != 0 ? tls_failure() : std::strerror(reason);
}

NodeClient::~NodeClient() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

NodeClient::NodeClient(NodeClient&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      tls_(std::move(other.tls_)),
      name_(std::move(other.name_)),
      input_(std::move(other.input_)),
      parser_(std::move(other.parser_)) {}

core::Error NodeClient::failure(std::string_view why) const {
  return {fmt::format("ERR {}: {}", core::printable(name_), core::printable(why))};
}

core::Result<> NodeClient::send(const std::vector<std::string>& words) {
  const std::string request = encode(words);
  for (size_t sent = 0; sent < request.size();) {
    errno = 0;
    const int64_t size = write(std::string_view(request).substr(sent));
    if (size <= 0) return failure(last_failure());
    sent += static_cast<size_t>(size);
  }
  return {};
}

core::Result<std::string> NodeClient::read_some() {
  using boost::system::in_place_value;
  using Bytes = core::Result<std::string>;
  if (!input_.empty()) return Bytes(in_place_value, std::exchange(input_, {}));
  std::string bytes(size_t{64} << 10, '\0');
  errno = 0;
  const int64_t size = read(bytes.data(), bytes.size());
  if (size == 0) return failure("the connection was closed");
  if (size < 0) return failure(last_failure());
  bytes.resize(static_cast<size_t>(size));
  return Bytes(in_place_value, std::move(bytes));
}

core::Result<protocol::Reply> NodeClient::call(const std::vector<std::string>& words) {
  if (auto sent = send(words); !sent) return sent.error();
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
    errno = 0;
    const int64_t size = read(buffer, sizeof buffer);
    if (size == 0) return failure("the connection was closed");
    if (size < 0) return failure(last_failure());
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
  facts.uptime_s = number_field(info->text, "uptime_in_seconds");
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
  return parse_node_file(reply->text);
}

}  // namespace server::cluster
