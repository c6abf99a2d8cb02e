// SPDX-License-Identifier: MIT
#include "server/tools/health_check.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "core/printable.h"
#include "server/base/config/config.h"

namespace server {
namespace {

constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";

struct HealthRequest {
  HealthQuestion question;
  HealthLimits limits;
};

class ProbeSocket {
 public:
  ProbeSocket(int family, std::chrono::seconds limit)
      : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval time{.tv_sec = limit.count(), .tv_usec = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  }
  ~ProbeSocket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;

  // Connects to the address. Returns false on failure; errno is then the reason.
  bool connect(const void* address, size_t size) const {
    return ::connect(descriptor_, static_cast<const sockaddr*>(address),
                     static_cast<socklen_t>(size)) == 0;
  }
  // Connects to an address of this machine, with the same address as the source. bind() rejects an
  // address of another machine, so a server on another machine is never checked.
  bool connect_to_own(const addrinfo& where) const {
    // IP_BIND_ADDRESS_NO_PORT makes connect(), rather than bind(), choose the source port, so that
    // health checks do not use up the ports of this machine.
    const int yes = 1;
    ::setsockopt(descriptor_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    sockaddr_storage own{};
    std::memcpy(&own, where.ai_addr, where.ai_addrlen);
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    std::memset(reinterpret_cast<char*>(&own) + offsetof(sockaddr_in, sin_port), 0,
                sizeof(in_port_t));
    return ::bind(descriptor_, reinterpret_cast<const sockaddr*>(&own), where.ai_addrlen) == 0 &&
           connect(where.ai_addr, where.ai_addrlen);
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Returns the first line of the reply to PING; empty if none arrives in time.
std::string ask_plainly(const ProbeSocket& socket) {
  // A server that has reached maxclients replies and closes before it receives PING. That reply is
  // read even if sending fails.
  (void)::send(socket.descriptor(), kPing.data(), kPing.size(), MSG_NOSIGNAL);
  std::string answer(512, '\0');
  const ssize_t size = ::recv(socket.descriptor(), answer.data(), answer.size(), 0);
  answer.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return answer.substr(0, answer.find('\r'));
}

// Sends PING as ask_plainly() does, but over TLS. The certificate is not verified, because the
// server is on the same machine.
std::string ask_over_tls(const ProbeSocket& socket) {
  ERR_clear_error();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), SSL_free);
  if (tls == nullptr || SSL_set_fd(tls.get(), socket.descriptor()) != 1) return {};
  if (SSL_connect(tls.get()) != 1) return {};
  if (SSL_write(tls.get(), kPing.data(), static_cast<int>(kPing.size())) <= 0) return {};
  std::string answer(512, '\0');
  const int size = SSL_read(tls.get(), answer.data(), static_cast<int>(answer.size()));
  if (size > 0) {
    answer.resize(static_cast<size_t>(size));
    return answer.substr(0, answer.find('\r'));
  }
  // A server that demands a client certificate sends the TLS alert certificate_required, which
  // shows that it is alive.
  constexpr int kCertificateRequired = SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED;
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  return reason == kCertificateRequired ? "-NOAUTH a client certificate is required" : "";
}

// Evaluates an attempt. `answer` is the first line received; empty if there was none.
Health evaluate(std::string_view where, const std::string& answer, HealthQuestion question) {
  if (answer.empty()) return {false, fmt::format("{} does not answer", where)};
  const bool serves = answer == "+PONG" || answer.starts_with("-NOAUTH");
  // The first characters of the types of RESP replies.
  constexpr std::string_view kReplyMarks = "+-:$*";
  const bool lives = kReplyMarks.find(answer.front()) != std::string_view::npos;
  return {question == HealthQuestion::kLives ? lives : serves,
          fmt::format("{} answers {}", where, core::printable(answer))};
}

// The result of one attempt at one address.
struct Attempt {
  bool has_connected = false;
  Health health;
};

// Returns the address at which this machine reaches a server that listens on `address`, an element
// of `bind`.
std::string reachable_address(std::string address) {
  if (address.starts_with('-')) address.erase(0, 1);
  if (address == "*" || address == "0.0.0.0") return "127.0.0.1";
  if (address == "::" || address == "::*") return "::1";
  return address;
}

// AddressInfo: owns the addresses of a host name. The server listens on the first address.
using AddressInfo = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
AddressInfo look_up(const std::string& address, int64_t port, int& error) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

Attempt ask_port(const std::string& address, int64_t port, bool has_tls,
                 const HealthRequest& request) {
  const bool is_loopback = address == "127.0.0.1" || address == "::1";
  const std::string where =
      is_loopback ? fmt::format("port {}", port) : fmt::format("port {} of {}", port, address);
  int error = 0;
  const AddressInfo info = look_up(address, port, error);
  if (info == nullptr) return {false, {false, fmt::format("{}: {}", where, ::gai_strerror(error))}};
  const ProbeSocket socket(info->ai_family, request.limits.answer);
  if (!socket.connect_to_own(*info)) {
    return {false, {false, fmt::format("{}: {}", where, std::strerror(errno))}};
  }
  const std::string answer = has_tls ? ask_over_tls(socket) : ask_plainly(socket);
  return {true, evaluate(where, answer, request.question)};
}

// Returns the result of the first healthy address. If no address is healthy, returns the result of
// the first address that accepted a connection. If no address accepted one, returns the result of
// the first address.
Health check_port(const std::vector<std::string>& addresses, int64_t port, bool has_tls,
                  const HealthRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  Attempt reached;
  for (const std::string& address : addresses) {
    Attempt attempt = ask_port(reachable_address(address), port, has_tls, request);
    if (attempt.health.is_healthy) return attempt.health;
    const bool reached_further = attempt.has_connected && !reached.has_connected;
    if (reached.health.text.empty() || reached_further) reached = std::move(attempt);
    if (std::chrono::steady_clock::now() - begin > request.limits.slow) break;
  }
  return reached.health;
}

Health check_path(const std::string& path, const HealthRequest& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {false, "the socket's path is too long"};
  path.copy(address.sun_path, path.size());
  const ProbeSocket socket(AF_UNIX, request.limits.answer);
  if (!socket.connect(&address, sizeof address)) {
    return {false, fmt::format("{}: {}", path, std::strerror(errno))};
  }
  return evaluate(path, ask_plainly(socket), request.question);
}

}  // namespace

HealthQuestion take_health_question(std::vector<const char*>& arguments) {
  const bool is_there = arguments.size() > 2 &&
                        std::string_view(arguments[1]) == "--health-check" &&
                        std::string_view(arguments[2]) == "--alive";
  if (!is_there) return HealthQuestion::kServes;
  arguments.erase(arguments.begin() + 2);
  return HealthQuestion::kLives;
}

Health check_health(const Config& config, HealthQuestion question, const HealthLimits& limits) {
  const HealthRequest request{question, limits};
  // If `bind` names no address, the server listens on no TCP port, so only the unix socket is
  // tried.
  if (const auto addresses = ListenOptions(config).bind_addresses(); !addresses.empty()) {
    if (config.port() != 0) return check_port(addresses, config.port(), false, request);
    if (const int64_t port = config.integer(OptionId::kTlsPort); port != 0) {
      return check_port(addresses, port, true, request);
    }
  }
  if (const std::string path = config.text(OptionId::kUnixSocket); !path.empty()) {
    return check_path(path, request);
  }
  return {false, "the configuration names nothing to listen on"};
}

}  // namespace server
