// SPDX-License-Identifier: MIT
#include "server/net/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/clock.h"
#include "server/acl/users.h"
#include "server/config/config.h"
#include "server/net/connection.h"
#include "server/process/log.h"
#include "server/process/statistics.h"
#include "server/session/clients.h"
#include "server/session/session_user.h"
#include "server/transport/tls_stream.h"

namespace server::net {
namespace {

namespace ip = asio::ip;

constexpr int kUnixBacklogMax = 1024;

void set_option(int descriptor, int level, int name, int value) {
  // A socket option that the system refuses costs speed, not correctness.
  (void)::setsockopt(descriptor, level, name, &value, sizeof value);
}

// Asio opens sockets that a program started by us would inherit.
void make_private(int descriptor) {
  (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

// Of a TCP socket; an address of zeros when the system tells none.
ip::tcp::endpoint tcp_endpoint(int descriptor, bool of_peer) {
  ip::tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  const int failed = of_peer ? ::getpeername(descriptor, endpoint.data(), &size)
                             : ::getsockname(descriptor, endpoint.data(), &size);
  if (failed != 0) return {};
  endpoint.resize(size);
  return endpoint;
}

// "127.0.0.1:50000" or "[::1]:50000".
std::string text_of(const ip::tcp::endpoint& endpoint) {
  const ip::address address = endpoint.address();
  const std::string_view form = address.is_v6() ? "[{}]:{}" : "{}:{}";
  return fmt::format(fmt::runtime(form), address.to_string(), endpoint.port());
}

bool is_loopback(const ip::address& address) {
  const bool is_mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  return is_mapped ? ip::make_address_v4(ip::v4_mapped, address.to_v6()).is_loopback()
                   : address.is_loopback();
}

}  // namespace

std::string Listener::Place::name() const {
  return fmt::format("{}:{}", address, port);
}

Listener::~Listener() {
  close();
}

core::Result<> Listener::open() {
  const ListenOptions options(services_.config);
  const std::scoped_lock lock(mutex_);
  if (auto opened = open_tcp_endpoints(endpoints_); !opened) return opened;
  if (!options.unix_socket().empty()) {
    const auto mode = static_cast<unsigned>(options.unix_socket_mode());
    if (auto opened = open_unix(options.unix_socket(), mode); !opened) return opened;
  }
  if (endpoints_.empty()) return core::Error{"Configured to not listen anywhere, exiting."};
  follow_options();
  return {};
}

void Listener::follow_options() {
  services_.config.on_change(OptionId::kBind, [this]() -> core::Result<> {
    if (rebind()) return {};
    return core::Error{"Failed to bind to specified addresses."};
  });
  for (const OptionId id : {OptionId::kPort, OptionId::kTlsPort}) {
    services_.config.on_change(id, [this]() -> core::Result<> {
      if (rebind()) return {};
      return core::Error{"Unable to listen on this port. Check server logs."};
    });
  }
}

std::vector<Listener::Place> Listener::wanted_places() const {
  const Config& config = services_.config;
  std::vector<Place> wanted;
  for (const auto& [kind, port] :
       {std::pair{Kind::kTcp, config.port()},
        std::pair{Kind::kTls, static_cast<uint16_t>(config.integer(OptionId::kTlsPort))}}) {
    if (port == 0) continue;
    for (std::string address : ListenOptions(config).bind_addresses()) {
      const bool is_optional = address.starts_with('-');
      if (is_optional) address.erase(0, 1);
      wanted.push_back({kind, std::move(address), port, is_optional});
    }
  }
  return wanted;
}

core::Result<> Listener::open_tcp_endpoints(Endpoints& endpoints) {
  for (const Place& place : wanted_places()) {
    const auto is_here = [&](const auto& endpoint) { return endpoint->place.is_same(place); };
    if (std::ranges::any_of(endpoints, is_here)) continue;
    auto opened = open_tcp(place);
    if (opened) {
      endpoints.push_back(std::move(*opened));
    } else if (place.is_optional) {
      log_verbose("Not listening on optional address: {}", opened.error().message);
    } else {
      // Redis' words, which the tests of others look for.
      return core::Error{fmt::format("Failed listening on port {} ({}), aborting: {}", place.port,
                                     place.kind == Kind::kTls ? "TLS" : "TCP",
                                     opened.error().message)};
    }
  }
  return {};
}

core::Result<> Listener::rebind() {
  const auto wanted = wanted_places();
  const std::scoped_lock lock(mutex_);
  // First the old ones end, because `*` and an address on the same port exclude each other. A
  // socket that is shut down keeps its name and can listen again.
  Endpoints retired;
  Endpoints kept;
  for (auto& endpoint : endpoints_) {
    const Place& here = endpoint->place;
    const bool stays =
        here.kind == Kind::kUnix ||
        std::ranges::any_of(wanted, [&](const Place& place) { return place.is_same(here); });
    if (!stays) {
      endpoint->is_retired = true;
      ::shutdown(endpoint->acceptor.native_handle(), SHUT_RDWR);
    }
    (stays ? kept : retired).push_back(std::move(endpoint));
  }
  const size_t kept_count = kept.size();
  endpoints_ = std::move(kept);
  auto opened = open_tcp_endpoints(endpoints_);
  if (!opened) {
    endpoints_.resize(kept_count);
    for (auto& endpoint : retired) {
      endpoint->is_retired = false;
      const int descriptor = endpoint->acceptor.native_handle();
      if (::listen(descriptor, static_cast<int>(ListenOptions(services_.config).tcp_backlog())) !=
          0) {
        log_error("Cannot listen on {} again: {}", endpoint->place.name(), std::strerror(errno));
      }
      endpoints_.push_back(std::move(endpoint));
    }
    retired.clear();
    log_warning("{}", opened.error().message);
  }
  for (const auto& endpoint : retired) close(*endpoint);
  for (const auto& endpoint : endpoints_) await(*endpoint);
  return opened;
}

core::Result<std::shared_ptr<Listener::Endpoint>> Listener::open_tcp(const Place& place) {
  const std::string& address = place.address;
  const bool any = address == "*" || address == "::*";
  const auto flags = ip::tcp::resolver::passive | ip::tcp::resolver::numeric_service;
  ip::basic_resolver<ip::tcp, Executor> resolver(threads_.at(0).context);
  const std::string service = std::to_string(place.port);
  ErrorCode error;
  const auto found = any ? resolver.resolve(address == "*" ? ip::tcp::v4() : ip::tcp::v6(), "",
                                            service, flags, error)
                         : resolver.resolve(address, service, flags, error);
  if (error) {
    return core::Error{
        fmt::format("Could not resolve bind address '{}': {}", address, error.message())};
  }
  const ip::tcp::endpoint where = found.begin()->endpoint();
  auto endpoint = std::make_shared<Endpoint>(threads_.at(0).context, place);
  Acceptor& acceptor = endpoint->acceptor;
  acceptor.open(where.protocol(), error);
  if (!error) {
    set_option(acceptor.native_handle(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (where.address().is_v6()) {
      set_option(acceptor.native_handle(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
    }
    acceptor.bind(where, error);
  }
  if (!error)
    acceptor.listen(static_cast<int>(ListenOptions(services_.config).tcp_backlog()), error);
  if (error) {
    return core::Error{fmt::format("Could not create server TCP listening socket {}: {}",
                                   place.name(), error.message())};
  }
  acceptor.native_non_blocking(true);
  make_private(acceptor.native_handle());
  return endpoint;
}

core::Result<> Listener::open_unix(const std::string& path, unsigned permissions) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return core::Error{fmt::format("Unix socket path is too long: {}", path)};
  }
  // Only a socket left behind by an earlier run is removed, never a file of another kind.
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) ::unlink(path.c_str());
  auto endpoint = std::make_shared<Endpoint>(threads_.at(0).context, Place{});
  Acceptor& acceptor = endpoint->acceptor;
  ErrorCode error;
  acceptor.open(asio::local::stream_protocol(), error);
  // bind() creates the file: the mask keeps its mode from being wider even for a moment.
  const mode_t old_mask = ::umask(0);
  ::umask(permissions == 0 ? old_mask : 0777 & ~permissions);
  if (!error) acceptor.bind(asio::local::stream_protocol::endpoint(path), error);
  ::umask(old_mask);
  if (!error) acceptor.listen(kUnixBacklogMax, error);
  if (!error && permissions != 0 && ::chmod(path.c_str(), permissions) != 0) {
    error = ErrorCode(errno, boost::system::system_category());
  }
  if (error) {
    return core::Error{fmt::format("Failed opening Unix socket {}: {}", path, error.message())};
  }
  acceptor.native_non_blocking(true);
  make_private(acceptor.native_handle());
  unix_path_ = path;
  endpoints_.push_back(std::move(endpoint));
  return {};
}

void Listener::start() {
  const std::scoped_lock lock(mutex_);
  for (const auto& endpoint : endpoints_) await(*endpoint);
}

void Listener::close() {
  const std::scoped_lock lock(mutex_);
  for (const auto& endpoint : endpoints_) close(*endpoint);
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  unix_path_.clear();
}

void Listener::close(Endpoint& endpoint) {
  ErrorCode ignored;
  endpoint.acceptor.close(ignored);
  endpoint.pause.cancel();
}

void Listener::await(Endpoint& endpoint) {
  if (std::exchange(endpoint.is_awaited, true) || !endpoint.acceptor.is_open()) return;
  const auto self = endpoint.shared_from_this();
  endpoint.acceptor.async_wait(Acceptor::wait_read, [this, self](const ErrorCode& error) {
    const std::scoped_lock lock(mutex_);
    self->is_awaited = false;
    if (error || self->is_retired) return;
    if (accept_waiting(*self)) return await(*self);
    // Out of descriptors, or of handshakes: the queue stays readable, so without a pause this would
    // spin.
    self->pause.expires_after(std::chrono::milliseconds(100));
    self->pause.async_wait([this, self](const ErrorCode& cancelled) {
      const std::scoped_lock pause_lock(mutex_);
      if (!cancelled && !self->is_retired) await(*self);
    });
  });
}

bool Listener::accept_waiting(Endpoint& endpoint) {
  // A bound leaves room for the clients of this thread during a storm of connections.
  constexpr int kAcceptsPerWakeUp = 256;
  for (int i = 0; i < kAcceptsPerWakeUp; ++i) {
    if (endpoint.place.kind == Kind::kTls && !handshakes_.make_room()) return false;
    const int descriptor = ::accept4(endpoint.acceptor.native_handle(), nullptr, nullptr,
                                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      admit(descriptor, endpoint.place.kind);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    log_warning("Accepting client connection: {}", std::strerror(errno));
    return false;
  }
  return true;
}

std::string Listener::refusal(int descriptor, Kind kind) const {
  if (services_.clients.count() >= static_cast<size_t>(services_.config.max_clients())) {
    return "-ERR max number of clients reached\r\n";
  }
  const bool open_to_all =
      ListenOptions(services_.config).protected_mode() && services_.users.has_no_password();
  if (open_to_all && kind != Kind::kUnix &&
      !is_loopback(tcp_endpoint(descriptor, true).address())) {
    return "-DENIED Bloomery is running in protected mode because protected mode is enabled and "
           "no password is set. Connections are accepted from the loopback interface only. Set "
           "'requirepass', or 'protected-mode no' if the network is trusted, and connect again."
           "\r\n";
  }
  return "";
}

std::shared_ptr<Session> Listener::new_session(int descriptor, Kind kind) {
  auto session = std::make_shared<Session>(services_.clients.next_id());
  session->socket.descriptor = descriptor;
  session->is_unix_socket = kind == Kind::kUnix;
  if (kind == Kind::kTls) {
    session->socket.tls =
        std::make_shared<TlsStream>(tls_.server_context(), TlsStream::Side::kServer, descriptor);
  }
  const auto name = [&](bool of_peer) {
    return kind == Kind::kUnix ? unix_path_ + ":0" : text_of(tcp_endpoint(descriptor, of_peer));
  };
  session->address = name(true);
  session->local_address = name(false);
  session->created_ms = services_.clock.wall_ms();
  session->last_interaction_ms.store(session->created_ms);
  set_default_user(*session, services_.users);
  return session;
}

void Listener::admit(int descriptor, Kind kind) {
  if (const std::string text = refusal(descriptor, kind); !text.empty()) {
    // Before a handshake nothing can be said that a TLS client would understand.
    if (kind != Kind::kTls) {
      (void)::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    ::close(descriptor);
    services_.statistics.thread(0).connections_rejected.add();
    return;
  }
  services_.statistics.thread(0).connections_received.add();
  auto session = new_session(descriptor, kind);
  if (kind != Kind::kUnix) {
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    const auto keepalive_s = static_cast<int>(ListenOptions(services_.config).tcp_keepalive_s());
    if (keepalive_s > 0) {
      set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
      set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_s);
      set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, keepalive_s / 3));
      set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
    }
  }
  IoThread& thread = threads_.next();
  session->thread_index = thread.index;
  session->wake = [&thread, id = session->id] {
    thread.loop.post([&thread, id] {
      if (const auto connection = thread.connections.find(id)) connection->wake();
    });
  };
  // Counted at once, so that a storm cannot pass maxclients before the threads catch up.
  services_.clients.add(session);
  if (kind == Kind::kTls) handshakes_.add(session);
  thread.loop.post([&thread, &services = services_, session = std::move(session)]() mutable {
    const uint64_t id = session->id;
    auto connection = std::make_shared<Connection>(thread, services, std::move(session));
    thread.connections.add(id, connection);
    connection->start();
  });
}

}  // namespace server::net
