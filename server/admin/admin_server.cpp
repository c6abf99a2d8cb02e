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

struct AdminServer::Parts {
  Parts(Services& its_services, const Tls& its_tls, Heartbeat::Ask ask, WriteCaller::Post post)
      : services(its_services),
        tls(its_tls),
        heartbeat(std::move(ask)),
        site(services, heartbeat, std::move(post)) {}

  void admit(int descriptor);
  void make_room();
  void tick();
  void close();

  Services& services;
  const Tls& tls;
  Heartbeat heartbeat;
  asio::io_context context{1};
  net::Timer timer{context};
  Site site;
  std::vector<std::shared_ptr<net::ListeningSocket>> doors;
  std::vector<std::shared_ptr<HttpConnection>> connections;
  bool is_encrypted = false;
  bool is_closed = false;
  std::thread thread;
};

AdminServer::AdminServer(Services& services, const Tls& tls, Heartbeat::Ask ask,
                         WriteCaller::Post post)
    : parts_(std::make_unique<Parts>(services, tls, std::move(ask), std::move(post))) {}

AdminServer::~AdminServer() {
  stop();
}

core::Result<> AdminServer::open() {
  const Config& config = parts_->services.config;
  const auto port = static_cast<uint16_t>(config.integer(OptionId::kHttpPort));
  if (port == 0) return {};
  parts_->is_encrypted = config.flag(OptionId::kHttpTls);
  for (std::string address : split_at_spaces(config.text(OptionId::kHttpBind))) {
    const bool is_optional = address.starts_with('-');
    if (is_optional) address.erase(0, 1);
    auto opened = net::ListeningSocket::open_tcp(parts_->context, address, port, kBacklog);
    if (opened) {
      parts_->doors.push_back(std::move(*opened));
      continue;
    }
    if (!is_optional) {
      return core::Error{
          fmt::format("Failed listening on http-port {}: {}", port, opened.error().message)};
    }
    log_verbose("Not listening on optional http-bind address: {}", opened.error().message);
  }
  if (!parts_->doors.empty()) return {};
  return core::Error{fmt::format("http-port {} is set, and no address of http-bind is here", port)};
}

void AdminServer::start() {
  Parts& parts = *parts_;
  if (parts.doors.empty()) return;
  for (const auto& door : parts.doors) {
    // The thread accepts few connections per iteration of its event loop, so that existing
    // connections are still served when many clients connect at once.
    door->start({.accept = [&parts](int descriptor) { parts.admit(descriptor); },
                 .accepts_per_round_max = [] { return 16; }});
  }
  parts.tick();
  parts.thread = start_thread("admin", [&parts] { parts.context.run(); });
}

void AdminServer::stop() {
  Parts& parts = *parts_;
  if (!parts.thread.joinable()) return;
  asio::post(parts.context, [&parts] { parts.close(); });
  parts.thread.join();
}

void AdminServer::Parts::close() {
  is_closed = true;
  for (const auto& door : doors) door->close();
  for (const auto& connection : connections) connection->close();
  connections.clear();
  timer.cancel();
}

void AdminServer::Parts::tick() {
  heartbeat.tick(services.clock.monotonic_us());
  site.tick();
  const int64_t now_us = steady_us();
  for (const auto& connection : connections) {
    if (connection->is_late(now_us)) connection->close();
  }
  std::erase_if(connections, [](const auto& connection) { return connection->is_closed(); });
  timer.expires_after(kTick);
  timer.async_wait([this](const net::ErrorCode& error) {
    if (!error && !is_closed) tick();
  });
}

void AdminServer::Parts::make_room() {
  std::erase_if(connections, [](const auto& connection) { return connection->is_closed(); });
  if (connections.size() < kConnectionsMax) return;
  const auto slowest = std::ranges::min_element(
      connections, {}, [](const auto& connection) { return connection->progressed_us(); });
  (*slowest)->close();
  connections.erase(slowest);
}

void AdminServer::Parts::admit(int descriptor) {
  make_room();
  const int on = 1;
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::unique_ptr<Stream> stream;
  if (is_encrypted) {
    stream =
        std::make_unique<TlsStream>(tls.server_context(), TlsStream::Side::kServer, descriptor);
  } else {
    stream = std::make_unique<SocketStream>(descriptor);
  }
  const SocketAddress peer(descriptor, SocketAddress::End::kPeer);
  auto connection = std::make_shared<HttpConnection>(
      HttpConnection::Parts{
          .context = context,
          .descriptor = descriptor,
          .stream = std::move(stream),
          .is_encrypted = is_encrypted,
          .peer = {peer.text(), peer.is_loopback()},
          .answer = [this](const HttpRequest& request,
                           const Peer& from) { return site.answer(request, from); }},
      steady_us());
  connection->start();
  connections.push_back(std::move(connection));
}

}  // namespace server::admin
