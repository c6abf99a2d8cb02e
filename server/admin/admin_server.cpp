// SPDX-License-Identifier: MIT
#include "server/admin/admin_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "server/admin/http_connection.h"
#include "server/admin/site.h"
#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/base/log/log.h"
#include "server/base/process/start_thread.h"
#include "server/base/transport/tls.h"
#include "server/base/transport/tls_stream.h"
#include "server/commands/services.h"
#include "server/net/loop/asio_types.h"
#include "server/net/loop/listening_socket.h"
#include "server/net/loop/socket_address.h"

namespace server::admin {
namespace {

namespace asio = net::asio;
using net::SocketAddress;

constexpr int kBacklog = 64;
constexpr auto kTick = std::chrono::seconds(1);

}  // namespace

AdminServer::AdminServer(Services& services, const Tls& tls, Heartbeat::Ask ask,
                         WriteCaller::Post post)
    : services_(services),
      tls_(tls),
      heartbeat_(std::move(ask)),
      site_(services, heartbeat_, std::move(post)) {}

core::Result<> AdminServer::open() {
  const Config& config = services_.config;
  const auto port = static_cast<uint16_t>(config.integer(OptionId::kHttpPort));
  if (port == 0) return {};
  is_encrypted_ = config.flag(OptionId::kHttpTls);
  for (std::string address : split_at_spaces(config.text(OptionId::kHttpBind))) {
    const bool is_optional = address.starts_with('-');
    if (is_optional) address.erase(0, 1);
    auto opened = net::ListeningSocket::open_tcp(context_, address, port, kBacklog);
    if (opened) {
      doors_.push_back(std::move(*opened));
      continue;
    }
    if (!is_optional) {
      return core::Error{
          fmt::format("Failed listening on http-port {}: {}", port, opened.error().message)};
    }
    log_verbose("Not listening on optional http-bind address: {}", opened.error().message);
  }
  if (!doors_.empty()) return {};
  return core::Error{fmt::format("http-port {} is set, and no address of http-bind is here", port)};
}

void AdminServer::start() {
  if (doors_.empty()) return;
  for (const auto& door : doors_) {
    // The thread accepts few connections per iteration of its event loop, so that existing
    // connections are still served when many clients connect at once.
    door->start({.accept = [this](int descriptor) { admit(descriptor); },
                 .accepts_per_round_max = [] { return 16; }});
  }
  tick();
  thread_ = start_thread("admin", [this] { context_.run(); });
}

void AdminServer::stop() {
  if (!thread_.joinable()) return;
  asio::post(context_, [this] { close(); });
  thread_.join();
}

void AdminServer::close() {
  is_closed_ = true;
  for (const auto& door : doors_) door->close();
  for (const auto& connection : connections_) connection->close();
  connections_.clear();
  timer_.cancel();
}

void AdminServer::tick() {
  heartbeat_.tick(services_.clock.monotonic_us());
  site_.tick();
  const int64_t now_us = steady_us();
  for (const auto& connection : connections_) {
    if (connection->is_late(now_us)) connection->close();
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->is_closed(); });
  timer_.expires_after(kTick);
  timer_.async_wait([this](const net::ErrorCode& error) {
    if (!error && !is_closed_) tick();
  });
}

void AdminServer::make_room() {
  std::erase_if(connections_, [](const auto& connection) { return connection->is_closed(); });
  if (connections_.size() < kConnectionsMax) return;
  const auto slowest = std::ranges::min_element(
      connections_, {}, [](const auto& connection) { return connection->progressed_us(); });
  (*slowest)->close();
  connections_.erase(slowest);
}

void AdminServer::admit(int descriptor) {
  make_room();
  const int on = 1;
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::unique_ptr<Stream> stream;
  if (is_encrypted_) {
    stream =
        std::make_unique<TlsStream>(tls_.server_context(), TlsStream::Side::kServer, descriptor);
  } else {
    stream = std::make_unique<SocketStream>(descriptor);
  }
  const SocketAddress peer(descriptor, SocketAddress::End::kPeer);
  auto connection = std::make_shared<HttpConnection>(
      HttpConnection::Parts{
          .context = context_,
          .descriptor = descriptor,
          .stream = std::move(stream),
          .is_encrypted = is_encrypted_,
          .peer = {peer.text(), peer.is_loopback()},
          .answer = [this](const HttpRequest& request,
                           const Peer& from) { return site_.answer(request, from); }},
      steady_us());
  connection->start();
  connections_.push_back(std::move(connection));
}

}  // namespace server::admin
