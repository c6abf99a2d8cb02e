// SPDX-License-Identifier: MIT
#include "server/admin/admin_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "server/admin/http_connection.h"
#include "server/admin/site.h"
#include "server/commands/services.h"
#include "server/config/config.h"
#include "server/config/words.h"
#include "server/net/asio_types.h"
#include "server/process/log.h"
#include "server/transport/tls.h"
#include "server/transport/tls_stream.h"

namespace server::admin {
namespace {

namespace asio = net::asio;
namespace ip = asio::ip;
using Acceptor = asio::basic_socket_acceptor<ip::tcp, net::Executor>;

constexpr int kBacklog = 64;
constexpr auto kTick = std::chrono::seconds(1);
// Without descriptors the queue stays readable: without a pause accepting would spin.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

bool is_loopback(const ip::address& address) {
  const bool is_mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  return is_mapped ? ip::make_address_v4(ip::v4_mapped, address.to_v6()).is_loopback()
                   : address.is_loopback();
}

std::string text_of(const ip::tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

}  // namespace

struct AdminServer::Parts {
  // A listening socket.
  struct Door {
    explicit Door(asio::io_context& context) : acceptor(context), pause(context) {}
    Acceptor acceptor;
    net::Timer pause;
  };

  Parts(Services& its_services, const Tls& its_tls, Heartbeat::Ask ask)
      : services(its_services),
        tls(its_tls),
        heartbeat(std::move(ask)),
        site(services, heartbeat) {}

  core::Result<> open_door(std::string address, uint16_t port);
  void await(Door& door);
  // False when the process has no descriptors left.
  bool accept_waiting(Door& door);
  void admit(int descriptor, const ip::tcp::endpoint& peer);
  void make_room();
  void tick();
  void close();

  Services& services;
  const Tls& tls;
  Heartbeat heartbeat;
  asio::io_context context{1};
  net::Timer timer{context};
  Site site;
  std::vector<std::unique_ptr<Door>> doors;
  std::vector<std::shared_ptr<HttpConnection>> connections;
  bool is_encrypted = false;
  bool is_closed = false;
  std::thread thread;
};

AdminServer::AdminServer(Services& services, const Tls& tls, Heartbeat::Ask ask)
    : parts_(std::make_unique<Parts>(services, tls, std::move(ask))) {}

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
    const auto opened = parts_->open_door(address, port);
    if (opened) continue;
    if (!is_optional) {
      return core::Error{
          fmt::format("Failed listening on http-port {}: {}", port, opened.error().message)};
    }
    log_verbose("Not listening on optional http-bind address: {}", opened.error().message);
  }
  if (!parts_->doors.empty()) return {};
  return core::Error{fmt::format("http-port {} is set, and no address of http-bind is here", port)};
}

core::Result<> AdminServer::Parts::open_door(std::string address, uint16_t port) {
  const bool is_any = address == "*" || address == "::*";
  if (is_any) address = address == "*" ? "0.0.0.0" : "::";
  net::ErrorCode error;
  ip::basic_resolver<ip::tcp, net::Executor> resolver(context);
  const auto found =
      resolver.resolve(address, std::to_string(port),
                       ip::tcp::resolver::passive | ip::tcp::resolver::numeric_service, error);
  if (error) return core::Error{fmt::format("{}: {}", address, error.message())};
  const ip::tcp::endpoint where = found.begin()->endpoint();
  auto door = std::make_unique<Door>(context);
  door->acceptor.open(where.protocol(), error);
  if (!error) {
    const int descriptor = door->acceptor.native_handle();
    (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    door->acceptor.set_option(ip::tcp::acceptor::reuse_address(true), error);
    if (where.address().is_v6()) door->acceptor.set_option(asio::ip::v6_only(true), error);
    door->acceptor.bind(where, error);
  }
  if (!error) door->acceptor.listen(kBacklog, error);
  if (!error) door->acceptor.native_non_blocking(true, error);
  if (error) return core::Error{fmt::format("{}: {}", text_of(where), error.message())};
  doors.push_back(std::move(door));
  return {};
}

void AdminServer::start() {
  Parts& parts = *parts_;
  if (parts.doors.empty()) return;
  for (const auto& door : parts.doors) parts.await(*door);
  parts.tick();
  parts.thread = std::thread([&parts] {
    ::pthread_setname_np(::pthread_self(), "admin");
    parts.context.run();
  });
}

void AdminServer::stop() {
  Parts& parts = *parts_;
  if (!parts.thread.joinable()) return;
  asio::post(parts.context, [&parts] { parts.close(); });
  parts.thread.join();
}

void AdminServer::Parts::close() {
  is_closed = true;
  net::ErrorCode ignored;
  for (const auto& door : doors) {
    door->acceptor.close(ignored);
    door->pause.cancel();
  }
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

void AdminServer::Parts::await(Door& door) {
  door.acceptor.async_wait(Acceptor::wait_read, [this, &door](const net::ErrorCode& error) {
    if (error || is_closed) return;
    if (accept_waiting(door)) return await(door);
    door.pause.expires_after(kAcceptPause);
    door.pause.async_wait([this, &door](const net::ErrorCode& cancelled) {
      if (!cancelled && !is_closed) await(door);
    });
  });
}

bool AdminServer::Parts::accept_waiting(Door& door) {
  // A storm of connections lets those that are there have their turn.
  constexpr int kAcceptsPerWakeUp = 16;
  for (int i = 0; i < kAcceptsPerWakeUp; ++i) {
    ip::tcp::endpoint peer;
    auto size = static_cast<socklen_t>(peer.capacity());
    const int descriptor =
        ::accept4(door.acceptor.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      peer.resize(size);
      admit(descriptor, peer);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    log_warning("Accepting a client of http-port: {}", std::strerror(errno));
    return false;
  }
  return true;
}

void AdminServer::Parts::make_room() {
  std::erase_if(connections, [](const auto& connection) { return connection->is_closed(); });
  if (connections.size() < kConnectionsMax) return;
  const auto slowest = std::ranges::min_element(
      connections, {}, [](const auto& connection) { return connection->progressed_us(); });
  (*slowest)->close();
  connections.erase(slowest);
}

void AdminServer::Parts::admit(int descriptor, const ip::tcp::endpoint& peer) {
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
  auto connection = std::make_shared<HttpConnection>(
      HttpConnection::Parts{
          .context = context,
          .descriptor = descriptor,
          .stream = std::move(stream),
          .is_encrypted = is_encrypted,
          .peer = {text_of(peer), is_loopback(peer.address())},
          .answer = [this](const HttpRequest& request,
                           const Peer& from) { return site.answer(request, from); }},
      steady_us());
  connection->start();
  connections.push_back(std::move(connection));
}

}  // namespace server::admin
