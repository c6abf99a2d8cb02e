// SPDX-License-Identifier: MIT
#include "server/net/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/clock.h"
#include "server/config/config.h"
#include "server/net/connection.h"
#include "server/process/log.h"
#include "server/process/statistics.h"
#include "server/session/clients.h"

namespace server::net {
namespace {

constexpr int kUnixBacklogMax = 1024;

core::Error system_error(const std::string& what) {
  return {fmt::format("{}: {}", what, std::strerror(errno))};
}

void set_option(int descriptor, int level, int name, int value) {
  // A socket option that the system refuses costs speed, not correctness.
  (void)::setsockopt(descriptor, level, name, &value, sizeof value);
}

// "127.0.0.1:50000", "[::1]:50000" or "/path:0".
std::string address_text(const sockaddr_storage& address, const std::string& unix_path) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& ip4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &ip4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(ip4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& ip6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &ip6.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(ip6.sin6_port));
  }
  return unix_path + ":0";
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& ip4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(ip4.sin_addr.s_addr) >> 24) == 127;
  }
  if (address.ss_family == AF_INET6) {
    const in6_addr& ip6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&ip6)) return ip6.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&ip6);
  }
  return true;
}

std::string tcp_name_of(const std::string& address, int port) {
  return fmt::format("{}:{}", address, port);
}

sockaddr_storage socket_address(int descriptor, bool of_peer) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const target = reinterpret_cast<sockaddr*>(&address);
  const int failed =
      of_peer ? ::getpeername(descriptor, target, &size) : ::getsockname(descriptor, target, &size);
  if (failed != 0) address.ss_family = AF_UNSPEC;
  return address;
}

}  // namespace

Listener::~Listener() {
  close();
}

core::Result<> Listener::open() {
  const Config& config = services_.config;
  const std::scoped_lock lock(mutex_);
  if (auto opened = open_tcp_endpoints(endpoints_); !opened) {
    // Redis' words, which the tests of others look for.
    return core::Error{fmt::format("Failed listening on port {} (TCP), aborting: {}", config.port(),
                                   opened.error().message)};
  }
  if (!config.unix_socket().empty()) {
    const auto mode = static_cast<unsigned>(config.unix_socket_mode());
    if (auto opened = open_unix(config.unix_socket(), mode); !opened) {
      return opened;
    }
  }
  if (endpoints_.empty()) return core::Error{"Configured to not listen anywhere, exiting."};
  return {};
}

core::Result<> Listener::open_tcp_endpoints(Endpoints& endpoints) {
  const Config& config = services_.config;
  const int port = config.port();
  if (port == 0) return {};
  for (std::string address : config.bind_addresses()) {
    const bool is_optional = address.starts_with('-');
    if (is_optional) address.erase(0, 1);
    const std::string name = tcp_name_of(address, port);
    if (std::ranges::any_of(endpoints, [&](const auto& e) { return e->tcp_name == name; }))
      continue;
    auto opened = open_tcp(address, port);
    if (opened) {
      endpoints.push_back(std::move(*opened));
    } else if (is_optional) {
      log_verbose("Not listening on optional address: {}", opened.error().message);
    } else {
      return opened.error();
    }
  }
  return {};
}

core::Result<> Listener::rebind() {
  const Config& config = services_.config;
  std::vector<std::string> wanted;
  for (std::string address : config.bind_addresses()) {
    if (address.starts_with('-')) address.erase(0, 1);
    if (config.port() != 0) wanted.push_back(tcp_name_of(address, config.port()));
  }
  const std::scoped_lock lock(mutex_);
  // First the old ones end, because `*` and an address on the same port exclude each other. A
  // socket that is shut down keeps its name and can listen again.
  auto retired = std::make_shared<Endpoints>();
  Endpoints kept;
  for (auto& endpoint : endpoints_) {
    const bool stays =
        endpoint->tcp_name.empty() || std::ranges::find(wanted, endpoint->tcp_name) != wanted.end();
    if (!stays) {
      endpoint->is_retired = true;
      ::shutdown(endpoint->descriptor, SHUT_RDWR);
    }
    (stays ? kept : *retired).push_back(std::move(endpoint));
  }
  const size_t kept_count = kept.size();
  endpoints_ = std::move(kept);
  if (auto opened = open_tcp_endpoints(endpoints_); !opened) {
    endpoints_.resize(kept_count);
    for (auto& endpoint : *retired) {
      endpoint->is_retired = false;
      if (::listen(endpoint->descriptor, static_cast<int>(config.tcp_backlog())) != 0) {
        log_error("Cannot listen on {} again: {}", endpoint->tcp_name, std::strerror(errno));
      }
      endpoints_.push_back(std::move(endpoint));
    }
    log_warning("{}", opened.error().message);
    return opened;
  }
  threads_.at(0).post([this, retired] {
    const std::scoped_lock post_lock(mutex_);
    for (auto& endpoint : *retired) endpoint->close();
    for (auto& endpoint : endpoints_) endpoint->watch();
    // The end of a pause may be in the queue already; behind it they can go.
    threads_.at(0).post([retired] {});
  });
  return {};
}

core::Result<std::unique_ptr<Listener::Endpoint>> Listener::open_tcp(const std::string& address,
                                                                     int port) {
  addrinfo hints{};
  hints.ai_family = address == "*" ? AF_INET : (address == "::*" ? AF_INET6 : AF_UNSPEC);
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const bool any = address == "*" || address == "::*";
  const std::string service = std::to_string(port);
  const int failed = getaddrinfo(any ? nullptr : address.c_str(), service.c_str(), &hints, &found);
  if (failed != 0) {
    return core::Error{
        fmt::format("Could not resolve bind address '{}': {}", address, gai_strerror(failed))};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, freeaddrinfo);
  const int descriptor =
      ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  const std::string where =
      fmt::format("Could not create server TCP listening socket {}:{}", address, port);
  if (descriptor < 0) return system_error(where);
  auto endpoint = std::make_unique<Endpoint>(*this, descriptor, tcp_name_of(address, port));
  set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  if (found->ai_family == AF_INET6) set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(descriptor, found->ai_addr, found->ai_addrlen) != 0) return system_error(where);
  if (::listen(descriptor, static_cast<int>(services_.config.tcp_backlog())) != 0)
    return system_error(where);
  return endpoint;
}

core::Result<> Listener::open_unix(const std::string& path, unsigned permissions) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return core::Error{fmt::format("Unix socket path is too long: {}", path)};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const std::string where = fmt::format("Failed opening Unix socket {}", path);
  if (descriptor < 0) return system_error(where);
  auto endpoint = std::make_unique<Endpoint>(*this, descriptor, "");
  // Only a socket left behind by an earlier run is removed, never a file of another kind.
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) ::unlink(path.c_str());
  // bind() creates the file: the mask keeps its mode from being wider even for a moment.
  const mode_t mode = permissions == 0 ? 0777 : permissions;
  const mode_t old_mask = permissions == 0 ? ::umask(0) : ::umask(0777 & ~mode);
  if (permissions == 0) ::umask(old_mask);
  const int bound = ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::umask(old_mask);
  if (bound != 0 || ::listen(descriptor, kUnixBacklogMax) != 0) return system_error(where);
  if (permissions != 0 && ::chmod(path.c_str(), mode) != 0) return system_error(where);
  unix_path_ = path;
  endpoints_.push_back(std::move(endpoint));
  return {};
}

void Listener::start() {
  const std::scoped_lock lock(mutex_);
  for (auto& endpoint : endpoints_) endpoint->watch();
}

void Listener::close() {
  const std::scoped_lock lock(mutex_);
  for (auto& endpoint : endpoints_) {
    endpoint->close();
  }
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  unix_path_.clear();
}

Listener::Endpoint::Endpoint(Listener& listener, int socket, std::string name)
    : owner(listener),
      descriptor(socket),
      tcp_name(std::move(name)),
      pause(listener.threads_.at(0).context) {}

void Listener::Endpoint::watch() {
  if (is_watched || descriptor < 0) return;
  is_watched = owner.threads_.at(0).readiness.add(descriptor, *this, EPOLLIN);
  if (!is_watched) log_error("Cannot wait for connections: {}", std::strerror(errno));
}

void Listener::Endpoint::close() {
  if (descriptor < 0) return;
  if (is_watched) owner.threads_.at(0).readiness.remove(descriptor, *this);
  ::close(descriptor);
  descriptor = -1;
  pause.cancel();
}

void Listener::Endpoint::on_ready(uint32_t /*events*/) {
  const std::scoped_lock lock(owner.mutex_);
  if (is_retired || descriptor < 0 || owner.accept_waiting(*this)) return;
  // Out of descriptors: the queue stays readable, so without a pause this would spin.
  owner.threads_.at(0).readiness.change(descriptor, *this, 0);
  pause.expires_after(std::chrono::milliseconds(100));
  pause.async_wait([this](const ErrorCode& error) {
    if (!error && descriptor >= 0)
      owner.threads_.at(0).readiness.change(descriptor, *this, EPOLLIN);
  });
}

bool Listener::accept_waiting(Endpoint& endpoint) {
  // A bound leaves room for the clients of this thread during a storm of connections.
  constexpr int kAcceptsPerWakeUp = 256;
  for (int i = 0; i < kAcceptsPerWakeUp; ++i) {
    const int descriptor =
        ::accept4(endpoint.descriptor, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      admit(descriptor, endpoint.tcp_name.empty());
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    log_warning("Accepting client connection: {}", std::strerror(errno));
    return false;
  }
  return true;
}

std::string Listener::refusal(int descriptor, bool is_unix) const {
  if (services_.clients.count() >= static_cast<size_t>(services_.config.max_clients())) {
    return "-ERR max number of clients reached\r\n";
  }
  const bool open_to_all = services_.config.protected_mode() && services_.config.password().empty();
  if (open_to_all && !is_unix && !is_loopback(socket_address(descriptor, true))) {
    return "-DENIED Bloomery is running in protected mode because protected mode is enabled and "
           "no password is set. Connections are accepted from the loopback interface only. Set "
           "'requirepass', or 'protected-mode no' if the network is trusted, and connect again."
           "\r\n";
  }
  return "";
}

void Listener::admit(int descriptor, bool is_unix) {
  if (const std::string text = refusal(descriptor, is_unix); !text.empty()) {
    (void)::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(descriptor);
    services_.statistics.thread(0).connections_rejected.add();
    return;
  }
  services_.statistics.thread(0).connections_received.add();
  auto session = std::make_shared<Session>(services_.clients.next_id());
  session->descriptor = descriptor;
  session->is_unix_socket = is_unix;
  session->address = address_text(socket_address(descriptor, true), unix_path_);
  session->local_address = address_text(socket_address(descriptor, false), unix_path_);
  session->created_ms = services_.clock.wall_ms();
  session->last_interaction_ms.store(session->created_ms);
  session->authenticated = services_.config.password().empty();
  if (!is_unix) {
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    const auto keepalive_s = static_cast<int>(services_.config.tcp_keepalive_s());
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
    thread.post([&thread, id] {
      const auto found = thread.connections.find(id);
      if (found != thread.connections.end()) found->second->wake();
    });
  };
  // Counted at once, so that a storm cannot pass maxclients before the threads catch up.
  services_.clients.add(session);
  thread.post([&thread, &services = services_, session = std::move(session)] {
    const uint64_t id = session->id;
    auto connection = std::make_shared<Connection>(thread, services, std::move(session));
    thread.connections.emplace(id, connection);
    connection->start();
  });
}

}  // namespace server::net
